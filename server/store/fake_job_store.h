// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/store/artifact_uses.h"
#include "server/store/job_store.h"
#include "server/store/owner_store.h"
#include "server/store/quota_ledger.h"

namespace mtmc::store {

// A JobStore in memory, for tests: everything that the interface promises but
// to survive the process. Open, so that a test can make single calls fail.
class FakeJobStore : public JobStore, public OwnerStore, public ArtifactUses {
 public:
  absl::Status Commit(const Write& write) override;
  absl::StatusOr<v1::Job> LookupJob(const std::string& name) override;
  absl::StatusOr<v1::Job::State> LookupState(const std::string& job) override;
  absl::StatusOr<JobPage> ListJobs(const JobQuery& query) override;
  absl::StatusOr<v1::Candidate> LookupCandidate(const std::string& name) override;
  absl::StatusOr<CandidatePage> ListCandidates(const CandidateQuery& query) override;
  absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(const std::string& job, int64_t after,
                                                       int limit) override;
  absl::StatusOr<std::vector<Compaction>> FindCompactions(absl::Time end, int limit) override;
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

  absl::StatusOr<OwnerRecord> ReadOwner() override;
  absl::Status ReplaceOwner(const OwnerRecord& seen, const OwnerRecord& next) override;

  absl::StatusOr<std::set<std::string>> FindOwned(
      const std::vector<std::string>& sha256s, const std::vector<std::string>& projects) override;
  absl::Status AddUpload(const std::string& sha256,
                         const std::vector<std::string>& projects) override;
  absl::Status RemoveUploads(const std::string& sha256) override;

 private:
  struct JobRecord {
    v1::Job job;
    int64_t position = 0;
    std::string request_id;
    std::string inspection_key;
    std::vector<v1::JobEvent> events;
    std::map<int, v1::Candidate> candidates;
    bool is_compacted = false;
  };

  struct PlacedRecord {
    int64_t position = 0;
    LearnedRecord learned;
  };

  void ApplyRecords(const Write& write) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckJob(const Write& write) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ApplyJob(const Write& write) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ApplyUses(const Write& write) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DeleteJob(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Mutex mu_;
  OwnerRecord owner_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, JobRecord> jobs_ ABSL_GUARDED_BY(mu_);
  int64_t last_position_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, EvaluationRecord> evaluations_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, v1::Inspection> inspections_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, LeaseRecord> leases_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, WorkerRecord> workers_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, PlacedRecord> records_ ABSL_GUARDED_BY(mu_);
  int64_t last_record_ ABSL_GUARDED_BY(mu_) = 0;
  // Digest, project and job; an upload is of no job.
  std::set<std::tuple<std::string, std::string, std::string>> uses_ ABSL_GUARDED_BY(mu_);
  QuotaLedger ledger_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::store
