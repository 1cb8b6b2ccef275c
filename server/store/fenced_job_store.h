// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/store/job_store.h"

namespace mtmc::store {

// A JobStore as the owner of one epoch uses it: what it writes is refused with NOT_OWNER
// once another one owns the jobs. Thread-safe as `store` is, which outlives it.
class FencedJobStore final : public JobStore {
 public:
  FencedJobStore(JobStore& store, int64_t epoch) : store_(store), epoch_(epoch) {}

  absl::Status Commit(const Write& write) override;
  absl::Status CommitTaking(Write& write) override;
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

  void BeginGroups() override { store_.BeginGroups(); }

  void EndGroups() override { store_.EndGroups(); }

  bool SendEvents(TellEvents tell) override { return store_.SendEvents(std::move(tell)); }

  int64_t newest_commit() override { return store_.newest_commit(); }

  void AfterCommit(int64_t number, std::function<void()> task) override {
    store_.AfterCommit(number, std::move(task));
  }

 private:
  JobStore& store_;
  const int64_t epoch_;
};

}  // namespace mtmc::store
