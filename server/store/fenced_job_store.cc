// SPDX-License-Identifier: Apache-2.0
#include "server/store/fenced_job_store.h"

namespace mtmc::store {

absl::Status FencedJobStore::Commit(const Write& write) {
  Write fenced = write;
  return CommitTaking(fenced);
}

absl::Status FencedJobStore::CommitTaking(Write& write) {
  write.epoch = epoch_;
  return store_.CommitTaking(write);
}

absl::StatusOr<v1::Job> FencedJobStore::LookupJob(const std::string& name) {
  return store_.LookupJob(name);
}

absl::StatusOr<v1::Job::State> FencedJobStore::LookupState(const std::string& job) {
  return store_.LookupState(job);
}

absl::StatusOr<JobPage> FencedJobStore::ListJobs(const JobQuery& query) {
  return store_.ListJobs(query);
}

absl::StatusOr<v1::Candidate> FencedJobStore::LookupCandidate(const std::string& name) {
  return store_.LookupCandidate(name);
}

absl::StatusOr<CandidatePage> FencedJobStore::ListCandidates(const CandidateQuery& query) {
  return store_.ListCandidates(query);
}

absl::StatusOr<std::vector<v1::JobEvent>> FencedJobStore::ReadEvents(const std::string& job,
                                                                     int64_t after, int limit) {
  return store_.ReadEvents(job, after, limit);
}

absl::StatusOr<std::vector<Compaction>> FencedJobStore::FindCompactions(absl::Time end, int limit) {
  return store_.FindCompactions(end, limit);
}

absl::StatusOr<std::vector<v1::JobEvent>> FencedJobStore::ReadLineage(const std::string& job) {
  return store_.ReadLineage(job);
}

absl::StatusOr<std::optional<EvaluationRecord>> FencedJobStore::FindEvaluation(
    const std::string& fingerprint) {
  return store_.FindEvaluation(fingerprint);
}

absl::StatusOr<std::optional<v1::Inspection>> FencedJobStore::FindInspection(
    const std::string& key) {
  return store_.FindInspection(key);
}

absl::StatusOr<std::vector<v1::TunedRecord>> FencedJobStore::FindRecords(
    const std::string& project, const std::vector<std::string>& anchors) {
  return store_.FindRecords(project, anchors);
}

absl::StatusOr<v1::TunedRecord> FencedJobStore::LookupRecord(const std::string& name) {
  return store_.LookupRecord(name);
}

absl::StatusOr<RecordPage> FencedJobStore::ListRecords(const RecordQuery& query) {
  return store_.ListRecords(query);
}

absl::StatusOr<QuotaAccount> FencedJobStore::FindQuota(const std::string& job,
                                                       QuotaResource resource) {
  return store_.FindQuota(job, resource);
}

absl::StatusOr<std::vector<ProjectQuota>> FencedJobStore::ListQuotas(const std::string& project) {
  return store_.ListQuotas(project);
}

absl::StatusOr<Fleet> FencedJobStore::ReadFleet() { return store_.ReadFleet(); }

}  // namespace mtmc::store
