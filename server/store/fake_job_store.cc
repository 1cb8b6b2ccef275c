// SPDX-License-Identifier: Apache-2.0
#include "server/store/fake_job_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/store/job_order.h"
#include "server/store/page_token.h"

namespace mtmc::store {
namespace {

absl::Status NotFound(const std::string& kind, const std::string& name) {
  return rpc::MakeError(absl::StatusCode::kNotFound, kind + "_NOT_FOUND",
                        absl::StrCat("\"", name, "\" does not exist"));
}

absl::Status AlreadyExists(const std::string& what) {
  return rpc::MakeError(absl::StatusCode::kAlreadyExists, "ALREADY_EXISTS", what + " exists");
}

bool Matches(const JobQuery& query, const v1::Job& job, const std::string& request_id) {
  const bool is_in_project =
      query.project.empty() || job.name().rfind(query.project + "/jobs/", 0) == 0;
  const bool has_state = query.states.empty() || std::find(query.states.begin(), query.states.end(),
                                                           job.state()) != query.states.end();
  return is_in_project && has_state && (query.request_id.empty() || query.request_id == request_id);
}

std::string Listing(const JobQuery& query) {
  std::string listing = "jobs " + query.project;
  for (const v1::Job::State state : query.states) absl::StrAppend(&listing, ",", state);
  return listing + ListingOf(query.order);
}

}  // namespace

absl::Status FakeJobStore::CheckJob(const Write& write) {
  if (write.new_job && jobs_.contains(write.job_name)) return AlreadyExists(write.job_name);
  for (const auto& [name, record] : jobs_) {
    const bool is_same_project =
        name.substr(0, name.rfind('/')) == write.job_name.substr(0, write.job_name.rfind('/'));
    if (write.new_job && is_same_project && !write.request_id.empty() &&
        record.request_id == write.request_id) {
      return AlreadyExists(write.request_id);
    }
  }
  if (ChangesJob(write) && !write.new_job && !jobs_.contains(write.job_name)) {
    return NotFound("JOB", write.job_name);
  }
  return absl::OkStatus();
}

void FakeJobStore::ApplyJob(const Write& write) {
  if (write.new_job) {
    jobs_[write.job_name] = {
        .job = *write.new_job, .position = ++last_position_, .request_id = write.request_id};
  }
  if (write.job_name.empty()) return;
  JobRecord& record = jobs_[write.job_name];
  if (write.job) record.job = *write.job;
  record.job.clear_inspection();
  if (!write.inspection_key.empty()) record.inspection_key = write.inspection_key;
  for (const v1::JobEvent& event : write.events) {
    if (event.has_candidate()) record.candidates[event.candidate().trial()] = event.candidate();
    const int64_t last = record.events.empty() ? 0 : record.events.back().sequence();
    record.events.push_back(event);
    record.events.back().set_sequence(last + 1);
  }
  if (!write.superseded) return;
  record.is_compacted = true;
  std::erase_if(record.events, [&](const v1::JobEvent& event) {
    return std::find(write.superseded->begin(), write.superseded->end(), event.sequence()) !=
           write.superseded->end();
  });
}

void FakeJobStore::ApplyUses(const Write& write) {
  const auto add = [&](const v1::Digest& digest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (digest.sha256().empty()) return;
    uses_.emplace(digest.sha256(), ProjectOfJob(write.job_name), write.job_name);
  };
  if (write.new_job) {
    add(write.new_job->problem().source());
    add(write.new_job->start_program());
  }
  for (const v1::JobEvent& event : write.events) {
    for (const v1::Digest* digest : ArtifactsOf(event.candidate())) add(*digest);
  }
}

void FakeJobStore::DeleteJob(const std::string& name) {
  std::erase_if(uses_, [&](const auto& use) { return std::get<2>(use) == name; });
  const JobRecord record = std::move(jobs_.extract(name).mapped());
  std::erase_if(evaluations_, [&](const auto& entry) {
    return std::any_of(record.candidates.begin(), record.candidates.end(), [&](const auto& each) {
      return each.second.name() == entry.second.candidate;
    });
  });
  const bool is_shared = std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
    return entry.second.inspection_key == record.inspection_key;
  });
  if (!is_shared) inspections_.erase(record.inspection_key);
}

void FakeJobStore::ApplyRecords(const Write& write) {
  for (const std::string& name : write.refuted) records_.erase(name);
  for (const LearnedRecord& learned : write.learned) {
    const auto [placed, is_new] = records_.try_emplace(
        learned.record.name(), PlacedRecord{.position = last_record_ + 1, .learned = learned});
    if (is_new) ++last_record_;
    if (learned.record.seconds() < placed->second.learned.record.seconds()) {
      placed->second.learned = learned;
    }
  }
}

absl::Status FakeJobStore::Commit(const Write& write) {
  absl::MutexLock lock(&mu_);
  if (write.epoch != 0 && write.epoch != owner_.epoch) return NotOwner();
  MTMC_RETURN_IF_ERROR(CheckJob(write));
  MTMC_ASSIGN_OR_RETURN(const QuotaLedger::Posting posting, ledger_.Weigh(write));
  ledger_.Post(posting);
  ApplyJob(write);
  ApplyUses(write);
  if (write.evaluation) {
    const auto [present, is_new] =
        evaluations_.emplace(write.evaluation->fingerprint, *write.evaluation);
    if (!is_new && write.evaluation->rank() > present->second.rank()) {
      present->second = *write.evaluation;
    }
  }
  if (write.inspection) inspections_.emplace(write.inspection->key, write.inspection->inspection);
  for (const LeaseRecord& lease : write.leases) leases_[lease.id] = lease;
  if (!write.finished_work.empty()) {
    std::erase_if(leases_,
                  [&](const auto& lease) { return lease.second.work == write.finished_work; });
  }
  for (const WorkerRecord& worker : write.workers) workers_[worker.worker.name()] = worker;
  for (const std::string& name : write.forgotten_workers) workers_.erase(name);
  ApplyRecords(write);
  if (write.is_job_deleted) DeleteJob(write.job_name);
  return absl::OkStatus();
}

absl::StatusOr<v1::Job> FakeJobStore::LookupJob(const std::string& name) {
  absl::MutexLock lock(&mu_);
  const auto found = jobs_.find(name);
  if (found == jobs_.end()) return NotFound("JOB", name);
  v1::Job job = found->second.job;
  const auto inspection = inspections_.find(found->second.inspection_key);
  if (inspection != inspections_.end()) *job.mutable_inspection() = inspection->second;
  return job;
}

absl::StatusOr<v1::Job::State> FakeJobStore::LookupState(const std::string& job) {
  absl::MutexLock lock(&mu_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return NotFound("JOB", job);
  return found->second.job.state();
}

absl::StatusOr<JobPage> FakeJobStore::ListJobs(const JobQuery& query) {
  absl::MutexLock lock(&mu_);
  MTMC_ASSIGN_OR_RETURN(const int page_size, EffectivePageSize(query.page_size));
  MTMC_ASSIGN_OR_RETURN(const PageMark start,
                        ParsePageMark(Listing(query), query.page_token, FirstMark(query.order)));
  std::vector<std::pair<PageMark, const JobRecord*>> found;
  for (const auto& [name, record] : jobs_) {
    const PageMark mark = MarkOf(record.job, record.position, query.order);
    if (!IsAfter(start, mark, query.order)) continue;
    if (Matches(query, record.job, record.request_id)) found.emplace_back(mark, &record);
  }
  std::sort(found.begin(), found.end(),
            [&](const auto& a, const auto& b) { return IsAfter(a.first, b.first, query.order); });
  JobPage page;
  PageMark last;
  for (const auto& [mark, record] : found) {
    if (page.jobs.size() == static_cast<size_t>(page_size)) {
      page.next_page_token = MakePageToken(Listing(query), last);
      break;
    }
    last = mark;
    page.jobs.push_back(record->job);
  }
  return page;
}

absl::StatusOr<v1::Candidate> FakeJobStore::LookupCandidate(const std::string& name) {
  absl::MutexLock lock(&mu_);
  for (const auto& [job, record] : jobs_) {
    for (const auto& [trial, candidate] : record.candidates) {
      if (candidate.name() == name) return candidate;
    }
  }
  return NotFound("CANDIDATE", name);
}

absl::StatusOr<CandidatePage> FakeJobStore::ListCandidates(const CandidateQuery& query) {
  absl::MutexLock lock(&mu_);
  const std::string listing = "candidates " + query.job;
  MTMC_ASSIGN_OR_RETURN(const int page_size, EffectivePageSize(query.page_size));
  MTMC_ASSIGN_OR_RETURN(const int64_t after, ParsePageToken(listing, query.page_token, -1));
  CandidatePage page;
  const auto found = jobs_.find(query.job);
  if (found == jobs_.end()) return page;
  for (const auto& [trial, candidate] : found->second.candidates) {
    if (trial <= after) continue;
    if (page.candidates.size() == static_cast<size_t>(page_size)) {
      page.next_page_token = MakePageToken(listing, page.candidates.back().trial());
      break;
    }
    page.candidates.push_back(candidate);
  }
  return page;
}

absl::StatusOr<std::vector<v1::JobEvent>> FakeJobStore::ReadEvents(const std::string& job,
                                                                   int64_t after, int limit) {
  absl::MutexLock lock(&mu_);
  std::vector<v1::JobEvent> events;
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return events;
  for (const v1::JobEvent& event : found->second.events) {
    if (event.sequence() > after && static_cast<int>(events.size()) < limit)
      events.push_back(event);
  }
  return events;
}

absl::StatusOr<std::vector<Compaction>> FakeJobStore::FindCompactions(absl::Time end, int limit) {
  absl::MutexLock lock(&mu_);
  std::map<int64_t, const JobRecord*> by_end;
  for (const auto& [name, record] : jobs_) {
    const auto key = OrderKey(record.job, JobOrder::Field::kEndTime);
    if (!record.is_compacted && key && *key < absl::ToUnixNanos(end)) by_end[*key] = &record;
  }
  std::vector<Compaction> found;
  for (const auto& [key, record] : by_end) {
    if (static_cast<int>(found.size()) == limit) break;
    Compaction& each = found.emplace_back();
    each.job = record->job.name();
    std::map<int64_t, int64_t> newest;
    for (const v1::JobEvent& event : record->events) {
      if (!event.has_candidate()) continue;
      const auto [known, is_new] = newest.try_emplace(event.candidate().trial(), event.sequence());
      if (!is_new) each.superseded.push_back(std::exchange(known->second, event.sequence()));
    }
  }
  return found;
}

absl::StatusOr<std::optional<EvaluationRecord>> FakeJobStore::FindEvaluation(
    const std::string& fingerprint) {
  absl::MutexLock lock(&mu_);
  const auto found = evaluations_.find(fingerprint);
  if (found == evaluations_.end()) return std::nullopt;
  return found->second;
}

absl::StatusOr<std::optional<v1::Inspection>> FakeJobStore::FindInspection(const std::string& key) {
  absl::MutexLock lock(&mu_);
  const auto found = inspections_.find(key);
  if (found == inspections_.end()) return std::nullopt;
  return found->second;
}

absl::StatusOr<std::vector<v1::TunedRecord>> FakeJobStore::FindRecords(
    const std::string& project, const std::vector<std::string>& anchors) {
  absl::MutexLock lock(&mu_);
  std::vector<v1::TunedRecord> found;
  for (const auto& [name, placed] : records_) {
    const bool is_asked =
        std::find(anchors.begin(), anchors.end(), placed.learned.anchor) != anchors.end();
    if (is_asked && (project.empty() || name.rfind(project + "/records/", 0) == 0)) {
      found.push_back(placed.learned.record);
    }
  }
  return found;
}

absl::StatusOr<v1::TunedRecord> FakeJobStore::LookupRecord(const std::string& name) {
  absl::MutexLock lock(&mu_);
  const auto found = records_.find(name);
  if (found == records_.end()) return NotFound("RECORD", name);
  return found->second.learned.record;
}

absl::StatusOr<RecordPage> FakeJobStore::ListRecords(const RecordQuery& query) {
  absl::MutexLock lock(&mu_);
  const std::string listing = absl::StrCat("records ", query.project);
  MTMC_ASSIGN_OR_RETURN(const int page_size, EffectivePageSize(query.page_size));
  MTMC_ASSIGN_OR_RETURN(const int64_t after, ParsePageToken(listing, query.page_token, 0));
  std::map<int64_t, const v1::TunedRecord*> by_position;
  for (const auto& [name, placed] : records_) {
    const bool is_in_project = name.rfind(query.project + "/records/", 0) == 0;
    if (is_in_project && placed.position > after) {
      by_position[placed.position] = &placed.learned.record;
    }
  }
  RecordPage page;
  int64_t last = 0;
  for (const auto& [position, record] : by_position) {
    if (page.records.size() == static_cast<size_t>(page_size)) {
      page.next_page_token = MakePageToken(listing, last);
      break;
    }
    last = position;
    page.records.push_back(*record);
  }
  return page;
}

absl::StatusOr<QuotaAccount> FakeJobStore::FindQuota(const std::string& job,
                                                     QuotaResource resource) {
  absl::MutexLock lock(&mu_);
  return ledger_.Find(job, resource);
}

absl::StatusOr<std::vector<ProjectQuota>> FakeJobStore::ListQuotas(const std::string& project) {
  absl::MutexLock lock(&mu_);
  return ledger_.List(project);
}

absl::StatusOr<Fleet> FakeJobStore::ReadFleet() {
  absl::MutexLock lock(&mu_);
  Fleet fleet;
  for (const auto& [name, worker] : workers_) fleet.workers.push_back(worker);
  for (const auto& [id, lease] : leases_) fleet.leases.push_back(lease);
  return fleet;
}

absl::StatusOr<OwnerRecord> FakeJobStore::ReadOwner() {
  absl::MutexLock lock(&mu_);
  return owner_;
}

absl::Status FakeJobStore::ReplaceOwner(const OwnerRecord& seen, const OwnerRecord& next) {
  absl::MutexLock lock(&mu_);
  if (owner_ != seen) return OwnerChanged();
  owner_ = next;
  return absl::OkStatus();
}

absl::StatusOr<std::set<std::string>> FakeJobStore::FindOwned(
    const std::vector<std::string>& sha256s, const std::vector<std::string>& projects) {
  absl::MutexLock lock(&mu_);
  std::set<std::string> owned;
  for (const auto& [sha256, project, job] : uses_) {
    if (std::find(sha256s.begin(), sha256s.end(), sha256) != sha256s.end() &&
        std::find(projects.begin(), projects.end(), project) != projects.end()) {
      owned.insert(sha256);
    }
  }
  return owned;
}

absl::Status FakeJobStore::AddUpload(const std::string& sha256,
                                     const std::vector<std::string>& projects) {
  absl::MutexLock lock(&mu_);
  for (const std::string& project : projects) uses_.emplace(sha256, project, "");
  return absl::OkStatus();
}

absl::Status FakeJobStore::RemoveUploads(const std::string& sha256) {
  absl::MutexLock lock(&mu_);
  std::erase_if(uses_, [&](const auto& use) {
    return std::get<0>(use) == sha256 && std::get<2>(use).empty();
  });
  return absl::OkStatus();
}

}  // namespace mtmc::store
