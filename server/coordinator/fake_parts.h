// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/coordinator/coordinator.h"
#include "server/search/backends.h"
#include "server/store/job_store.h"

// Small real implementations of what a coordinator works with, for tests: all
// deterministic, all without a device, a model or a network.
namespace mtmc::coordinator {

// A coder whose programs are the list of their actions. The action `reject` has
// no program.
class FakeCoder final : public search::MicroCoder {
 public:
  // From now on programs are the set of their actions: there are eight, and most steps
  // lead to one that was there before.
  void CloseSpace() ABSL_LOCKS_EXCLUDED(mu_);
  // Set: every call fails with it.
  void Break(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);
  // The next `count` calls fail with it.
  void BreakNext(int count, absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);
  // Set: every step fails with it, but not the start.
  void BreakSteps(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);
  int calls() const ABSL_LOCKS_EXCLUDED(mu_);
  // From now on steps are written as by a language model, which is asked `ask STEP` and says
  // `said STEP`, for 7 millionths of a dollar.
  void Speak() ABSL_LOCKS_EXCLUDED(mu_);
  // Each step costs so many tokens from now on.
  void Bill(int64_t tokens) ABSL_LOCKS_EXCLUDED(mu_);
  // What the steps were allowed to cost; 0 is no limit.
  std::vector<int64_t> token_limits() const ABSL_LOCKS_EXCLUDED(mu_);

  // From now on steps are begun, but not answered before Release().
  void Hold() ABSL_LOCKS_EXCLUDED(mu_);
  void Release() ABSL_LOCKS_EXCLUDED(mu_);
  bool is_held() const ABSL_LOCKS_EXCLUDED(mu_);

  void CreateProgram(search::Asked<v1::CreateProgramRequest> request,
                     search::Done<v1::CreateProgramResponse> done) override;
  void ListActions(search::Asked<v1::ListActionsRequest> request,
                   search::Done<v1::ListActionsResponse> done) override;
  void ApplyAction(search::Asked<v1::ApplyActionRequest> request,
                   search::Done<v1::ApplyActionResponse> done) override;

 private:
  absl::Status Enter() ABSL_LOCKS_EXCLUDED(mu_);
  std::string TextAfter(const std::string& text, const std::string& action)
      ABSL_LOCKS_EXCLUDED(mu_);

  mutable absl::Mutex mu_;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  int failing_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status next_failure_ ABSL_GUARDED_BY(mu_);
  absl::Status step_failure_ ABSL_GUARDED_BY(mu_);
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_holding_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::function<void()>> held_ ABSL_GUARDED_BY(mu_);
  bool is_closed_ ABSL_GUARDED_BY(mu_) = false;
  bool is_speaking_ ABSL_GUARDED_BY(mu_) = false;
  int64_t bill_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<int64_t> token_limits_ ABSL_GUARDED_BY(mu_);
};

// A policy that draws by the request's seed alone.
class FakePolicy final : public search::MacroPolicy {
 public:
  // Set: answers with this instead.
  std::function<absl::StatusOr<v1::ChooseActionResponse>(const v1::ChooseActionRequest&)> answer;

  void ChooseAction(search::Asked<v1::ChooseActionRequest> request,
                    search::Done<v1::ChooseActionResponse> done) override;
};

// What a fake worker finds: an inspection, or a measurement whose speedup the
// program's digest decides.
v1::LeaseResult FakeWork(const v1::Lease& lease);

// A worker that keeps to the protocol, with a result at once for every lease.
// It lives as long as its process would: over restarts of the coordinator.
class FakeWorker {
 public:
  explicit FakeWorker(std::string name = "workers/w");

  // What it does to a lease; the default measures by the program's digest.
  std::function<v1::LeaseResult(const v1::Lease&)> work;

  // Set before it is attached.
  v1::Isolation isolation = v1::ISOLATION_RESTRICTED;

  // Works on a thread of its own, as a real one does, and not on the coordinator's loop, which
  // nothing may hold up. Set before it is attached; it ends before the coordinator then.
  bool works_apart = false;

  // Calls `coordinator` from now on, until that stops.
  void Attach(Coordinator& coordinator);

  // The process dies and comes back: a new instance that knows nothing.
  void Restart();

  // How often each candidate (or job, for an inspection) was worked on.
  std::map<std::string, int> executions() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Call(Coordinator& coordinator);
  void Take(Coordinator& coordinator, const absl::StatusOr<v1::SynchronizeResponse>& response);

  const std::string name_;
  mutable absl::Mutex mu_;
  int instance_ ABSL_GUARDED_BY(mu_) = 1;
  v1::Lease lease_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, int> executions_ ABSL_GUARDED_BY(mu_);
  // Of one call. Last, because it uses all of the above.
  std::jthread thread_;
};

// A store that dies at a chosen commit, as its process would: that commit is
// made or not, and no later call succeeds until Revive.
class CrashingStore final : public store::JobStore {
 public:
  explicit CrashingStore(store::JobStore& store) : store_(store) {}

  // Dies at the `count`th commit from now, before it or right after it.
  void CrashAt(int count, bool is_committed) ABSL_LOCKS_EXCLUDED(mu_);
  // Is full from the `count`th commit from now on: nothing is written, and all can be read.
  void FillAt(int count) ABSL_LOCKS_EXCLUDED(mu_);
  bool is_full() const ABSL_LOCKS_EXCLUDED(mu_);
  // Ends either.
  void Revive() ABSL_LOCKS_EXCLUDED(mu_);
  // From now on this job cannot be deleted.
  void KeepJob(const std::string& name) ABSL_LOCKS_EXCLUDED(mu_);
  bool is_dead() const ABSL_LOCKS_EXCLUDED(mu_);
  int commits() const ABSL_LOCKS_EXCLUDED(mu_);

  absl::Status Commit(const store::Write& write) override;
  absl::StatusOr<v1::Job> LookupJob(const std::string& name) override;
  absl::StatusOr<v1::Job::State> LookupState(const std::string& job) override;
  absl::StatusOr<store::JobPage> ListJobs(const store::JobQuery& query) override;
  absl::StatusOr<v1::Candidate> LookupCandidate(const std::string& name) override;
  absl::StatusOr<store::CandidatePage> ListCandidates(const store::CandidateQuery& query) override;
  absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(const std::string& job, int64_t after,
                                                       int limit) override;
  absl::StatusOr<std::vector<store::Compaction>> FindCompactions(absl::Time end,
                                                                 int limit) override;
  absl::StatusOr<std::optional<store::EvaluationRecord>> FindEvaluation(
      const std::string& fingerprint) override;
  absl::StatusOr<std::optional<v1::Inspection>> FindInspection(const std::string& key) override;
  absl::StatusOr<std::vector<v1::TunedRecord>> FindRecords(
      const std::string& project, const std::vector<std::string>& anchors) override;
  absl::StatusOr<v1::TunedRecord> LookupRecord(const std::string& name) override;
  absl::StatusOr<store::RecordPage> ListRecords(const store::RecordQuery& query) override;
  absl::StatusOr<store::QuotaAccount> FindQuota(const std::string& job,
                                                store::QuotaResource resource) override;
  absl::StatusOr<std::vector<store::ProjectQuota>> ListQuotas(const std::string& project) override;
  absl::StatusOr<store::Fleet> ReadFleet() override;

 private:
  absl::Status Alive() const ABSL_LOCKS_EXCLUDED(mu_);

  store::JobStore& store_;
  mutable absl::Mutex mu_;
  int commits_ ABSL_GUARDED_BY(mu_) = 0;
  int crash_at_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_committed_ ABSL_GUARDED_BY(mu_) = false;
  bool is_dead_ ABSL_GUARDED_BY(mu_) = false;
  int full_at_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_full_ ABSL_GUARDED_BY(mu_) = false;
  std::string kept_job_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::coordinator
