// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/store/artifact_uses.h"
#include "server/store/job_store.h"
#include "server/store/owner_store.h"
#include "server/store/quota_ledger.h"
#include "server/store/write_queue.h"

namespace mtmc::store {

class SqlDatabase;

// Records in a SQL database, through SOCI. One connection writes, for a commit is
// short and its order matters; reads have connections of their own, as many as there
// are readers at once, so that none of them waits for a disk.
//
// While commits are grouped (JobStore), they go through a WriteQueue, whose thread is the
// one that writes. What a commit is refused for is known then: a job that is there or is
// not by reading, a quota that has no room by a ledger in memory, which has what is queued.
// It is right because nobody else writes: the transaction that writes a commit refuses all
// of them once another one owns the jobs (Write::epoch), and looks at the quotas again.
//
// A connection that is lost is opened again by the next call. What is lost with it was
// not written, or, if it was lost within the commit itself, is looked up before the same
// Write is applied again: a caller that repeats a Write after UNAVAILABLE never writes
// twice.
class SqlJobStore : public JobStore, public OwnerStore, public ArtifactUses {
 public:
  ~SqlJobStore() override;

  absl::Status Commit(const Write& write) override ABSL_LOCKS_EXCLUDED(write_mu_);
  absl::Status CommitTaking(Write& write) override ABSL_LOCKS_EXCLUDED(write_mu_);
  absl::StatusOr<v1::Job> LookupJob(const std::string& name) override;
  absl::StatusOr<v1::Job::State> LookupState(const std::string& job) override;
  absl::StatusOr<JobPage> ListJobs(const JobQuery& query) override;
  absl::StatusOr<v1::Candidate> LookupCandidate(const std::string& name) override;
  absl::StatusOr<CandidatePage> ListCandidates(const CandidateQuery& query) override;
  absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(const std::string& job, int64_t after,
                                                       int limit) override;
  absl::StatusOr<std::vector<Compaction>> FindCompactions(absl::Time end, int limit) override;
  absl::StatusOr<std::vector<v1::JobEvent>> ReadLineage(const std::string& job) override;
  absl::StatusOr<std::optional<EvaluationRecord>> FindEvaluation(
      const std::string& fingerprint) override;
  absl::StatusOr<std::optional<v1::Inspection>> FindInspection(const std::string& key) override;
  absl::StatusOr<std::vector<v1::TunedRecord>> FindRecords(
      const std::string& project, const std::vector<std::string>& anchors) override;
  absl::StatusOr<v1::TunedRecord> LookupRecord(const std::string& name) override;
  absl::StatusOr<RecordPage> ListRecords(const RecordQuery& query) override;
  absl::StatusOr<QuotaAccount> FindQuota(const std::string& job, QuotaResource resource) override;
  absl::StatusOr<std::vector<ProjectQuota>> ListQuotas(const std::string& project) override;
  absl::StatusOr<Fleet> ReadFleet() override;

  void BeginGroups() override;
  void EndGroups() override;
  bool SendEvents(TellEvents tell) override;
  int64_t newest_commit() override;
  void AfterCommit(int64_t number, std::function<void()> task) override;

  // Through connections of readers: a beat does not wait for a commit.
  absl::StatusOr<OwnerRecord> ReadOwner() override;
  absl::Status ReplaceOwner(const OwnerRecord& seen, const OwnerRecord& next) override;

  // Whatever the owner does; a write waits for the commit that is under way.
  absl::StatusOr<std::set<std::string>> FindOwned(
      const std::vector<std::string>& sha256s, const std::vector<std::string>& projects) override;
  absl::Status AddUpload(const std::string& sha256,
                         const std::vector<std::string>& projects) override
      ABSL_LOCKS_EXCLUDED(write_mu_);
  absl::Status RemoveUploads(const std::string& sha256) override ABSL_LOCKS_EXCLUDED(write_mu_);

 protected:
  explicit SqlJobStore(std::unique_ptr<const SqlDatabase> database);

  // Connects for the first time and brings the schema up to date.
  absl::Status Open() ABSL_LOCKS_EXCLUDED(write_mu_);

 private:
  struct Connection;

  template <class Body>
  absl::Status Run(Connection& connection, const Body& body);
  // `subject` is what a thread whose commits are grouped waits for; all if empty.
  template <class T, class Body>
  absl::StatusOr<T> Read(const std::string& subject, const Body& body);

  // Runs `body` in a transaction that may be repeated. REQUIRES: no commit of the caller's
  // waits to be written with others.
  template <class Body>
  absl::Status WriteUses(const Body& body) ABSL_LOCKS_EXCLUDED(write_mu_);

  absl::Status TryCommit(const Write& write, bool& is_in_doubt)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_);

  // Of a grouped commit (sql_write_group.cc).
  absl::Status AddToGroup(Write& write);
  absl::Status CheckNewJob(const Write& write);
  absl::Status CheckKnownJob(const std::string& name);
  absl::StatusOr<QuotaLedger::Posting> WeighQuotas(const Write& write);
  // Reads the ledger at its first use.
  absl::Status OpenLedger();

  bool IsGroupThread() const { return group_thread_.load() == std::this_thread::get_id(); }

  // A write of a group that changed a job's events: which one, and the sequence of the newest
  // one with it, unless that was written by an attempt whose answer was lost.
  struct Applied {
    size_t write = 0;
    std::optional<int64_t> last_event;
  };

  absl::Status WriteGroup(std::deque<Write>& writes) ABSL_LOCKS_EXCLUDED(write_mu_);
  // What was applied is in `applied` if it returns OK.
  absl::Status TryGroup(const std::deque<Write>& writes, std::vector<Applied>& applied)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_);
  void Tell(std::deque<Write>& writes, const std::vector<Applied>& applied) const;

  const std::unique_ptr<const SqlDatabase> database_;

  absl::Mutex write_mu_;
  std::unique_ptr<Connection> writer_ ABSL_GUARDED_BY(write_mu_);
  // Where commits can be lost, each writes an id of its own. Ids of those that were not
  // answered, by the digest of their Write: who repeats it writes the same id, which is
  // refused if it is there already.
  std::map<std::string, std::string> doubts_ ABSL_GUARDED_BY(write_mu_);
  // Ids that the next commit removes.
  std::vector<std::string> settled_ ABSL_GUARDED_BY(write_mu_);

  absl::Mutex read_mu_;
  // Those that nobody reads through.
  std::vector<std::unique_ptr<Connection>> readers_ ABSL_GUARDED_BY(read_mu_);

  // Who commits while commits are grouped, and so reads what is not written yet; none
  // otherwise.
  std::atomic<std::thread::id> group_thread_;
  // That thread's own: jobs that are there for sure.
  std::unordered_set<std::string> known_jobs_;
  // Likewise: the accounts of quotas with what is not written yet. Null until they are needed.
  std::unique_ptr<QuotaLedger> ledger_;
  // Null where nobody wants to know. Not changed while commits are grouped.
  TellEvents tell_events_;
  // The queue's: id of the group that is being written, where one can be lost.
  std::string group_id_ ABSL_GUARDED_BY(write_mu_);
  // Null unless commits are grouped. Last, because its thread uses all of the above.
  std::unique_ptr<WriteQueue> queue_;
};

}  // namespace mtmc::store
