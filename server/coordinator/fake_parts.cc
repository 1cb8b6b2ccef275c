// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/fake_parts.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/config/version.h"

namespace mtmc::coordinator {
namespace {

// A value of 0 to 15 that looks random and is the program's own.
int Quality(const v1::Digest& program) {
  return std::stoi(program.sha256().substr(0, 1), nullptr, 16);
}

// Three programs of 16 are wrong; the others are up to 2.5 times faster than
// the baseline.
v1::Evaluation Evaluate(const v1::EvaluationRequest& request) {
  v1::Evaluation evaluation;
  const int quality = Quality(request.program());
  if (quality < 3) {
    evaluation.set_verdict(v1::Evaluation::VERDICT_WRONG);
    evaluation.mutable_failure()->set_kind(v1::Failure::KIND_WRONG_RESULT);
    evaluation.mutable_failure()->set_stage(v1::STAGE_VERIFY);
    return evaluation;
  }
  const double speedup = 1 + 0.1 * quality;
  evaluation.set_verdict(v1::Evaluation::VERDICT_CORRECT);
  evaluation.mutable_measurement()->set_median_seconds(1e-3 / speedup);
  auto* comparison = evaluation.add_comparisons();
  comparison->set_baseline(v1::BASELINE_EAGER);
  comparison->set_speedup(speedup);
  return evaluation;
}

}  // namespace

v1::LeaseResult FakeWork(const v1::Lease& lease) {
  v1::LeaseResult result;
  if (lease.has_inspection()) {
    result.mutable_inspection()->set_minimum_bytes(64);
    result.mutable_inspection()->mutable_graph()->set_digest("graph");
  } else {
    *result.mutable_evaluation() = Evaluate(lease.evaluation());
  }
  return result;
}

void FakeCoder::Break(absl::Status status) {
  absl::MutexLock lock(&mu_);
  failure_ = std::move(status);
}

void FakeCoder::BreakNext(int count, absl::Status status) {
  absl::MutexLock lock(&mu_);
  failing_ = count;
  next_failure_ = std::move(status);
}

void FakeCoder::BreakSteps(absl::Status status) {
  absl::MutexLock lock(&mu_);
  step_failure_ = std::move(status);
}

int FakeCoder::calls() const {
  absl::MutexLock lock(&mu_);
  return calls_;
}

absl::Status FakeCoder::Enter() {
  absl::MutexLock lock(&mu_);
  ++calls_;
  if (failing_ == 0) return failure_;
  --failing_;
  return next_failure_;
}

void FakeCoder::Speak() {
  absl::MutexLock lock(&mu_);
  is_speaking_ = true;
}

void FakeCoder::Bill(int64_t tokens) {
  absl::MutexLock lock(&mu_);
  bill_ = tokens;
}

std::vector<int64_t> FakeCoder::token_limits() const {
  absl::MutexLock lock(&mu_);
  return token_limits_;
}

void FakeCoder::CloseSpace() {
  absl::MutexLock lock(&mu_);
  is_closed_ = true;
}

std::string FakeCoder::TextAfter(const std::string& text, const std::string& action) {
  absl::MutexLock lock(&mu_);
  if (!is_closed_) return absl::StrCat(text, "\n", action);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  std::set<std::string> actions(lines.begin() + 1, lines.end());
  actions.insert(action);
  std::string result = lines[0];
  for (const std::string& each : actions) absl::StrAppend(&result, "\n", each);
  return result;
}

void FakeCoder::CreateProgram(search::Asked<v1::CreateProgramRequest> /*request*/,
                              search::Done<v1::CreateProgramResponse> done) {
  const absl::Status status = Enter();
  if (!status.ok()) return done(status);
  v1::CreateProgramResponse response;
  response.mutable_program()->set_text("program 21");  // Slower than most.
  response.mutable_program()->set_schedule("naive");
  done(response);
}

void FakeCoder::ListActions(search::Asked<v1::ListActionsRequest> /*request*/,
                            search::Done<v1::ListActionsResponse> done) {
  const absl::Status status = Enter();
  if (!status.ok()) return done(status);
  v1::ListActionsResponse response;
  const std::vector<std::pair<v1::Action::Type, const char*>> actions = {
      {v1::Action::TYPE_FUSE, "fuse"},
      {v1::Action::TYPE_TILE, "tile"},
      {v1::Action::TYPE_VECTORIZE, "vectorize"},
      {v1::Action::TYPE_REORDER, "reject"},
      {v1::Action::TYPE_STOP, "stop"}};
  for (const auto& [type, text] : actions) {
    response.add_actions()->set_type(type);
    response.mutable_actions(response.actions_size() - 1)->set_text(text);
  }
  done(response);
}

void FakeCoder::ApplyAction(search::Asked<v1::ApplyActionRequest> request,
                            search::Done<v1::ApplyActionResponse> done) {
  absl::Status status = Enter();
  if (status.ok()) {
    absl::MutexLock lock(&mu_);
    status = step_failure_;
  }
  if (!status.ok()) return done(status);
  v1::ApplyActionResponse response;
  {
    absl::MutexLock lock(&mu_);
    token_limits_.push_back(request->context().max_tokens());
    response.mutable_token_use()->set_output_tokens(bill_);
    if (is_speaking_) {
      response.mutable_token_use()->set_model("parrot");
      response.mutable_token_use()->set_cost_micros(7);
      const std::string& step = request->action().text();
      response.mutable_exchange()->set_prompt(absl::StrCat("ask ", step));
      response.mutable_exchange()->set_reply(absl::StrCat("said ", step));
    }
  }
  if (request->action().text() == "reject") {
    response.mutable_coder_failure()->set_reason("UNSUPPORTED");
    response.mutable_coder_failure()->set_message("cannot reorder");
  } else {
    response.mutable_program()->set_text(
        TextAfter(request->program().text(), request->action().text()));
  }
  {
    absl::MutexLock lock(&mu_);
    if (is_holding_) return held_.push_back([done, response] { done(response); });
  }
  done(response);
}

void FakeCoder::Hold() {
  absl::MutexLock lock(&mu_);
  is_holding_ = true;
}

void FakeCoder::Release() {
  std::vector<std::function<void()>> held;
  {
    absl::MutexLock lock(&mu_);
    is_holding_ = false;
    held.swap(held_);
  }
  for (const auto& answer : held) answer();
}

bool FakeCoder::is_held() const {
  absl::MutexLock lock(&mu_);
  return !held_.empty();
}

void FakePolicy::ChooseAction(search::Asked<v1::ChooseActionRequest> request,
                              search::Done<v1::ChooseActionResponse> done) {
  if (answer) return done(answer(*request));
  v1::ChooseActionResponse response;
  response.set_policy("fake");
  response.set_chosen(static_cast<int>(request->seed() % request->actions_size()));
  for (int i = 0; i < request->actions_size(); ++i) {
    response.add_probabilities(1.0 / request->actions_size());
  }
  done(response);
}

FakeWorker::FakeWorker(std::string name) : work(FakeWork), name_(std::move(name)) {}

void FakeWorker::Attach(Coordinator& coordinator) { Call(coordinator); }

void FakeWorker::Restart() {
  absl::MutexLock lock(&mu_);
  ++instance_;
  lease_.Clear();
}

std::map<std::string, int> FakeWorker::executions() const {
  absl::MutexLock lock(&mu_);
  return executions_;
}

void FakeWorker::Call(Coordinator& coordinator) {
  v1::SynchronizeRequest request;
  request.mutable_worker()->set_name(name_);
  request.mutable_worker()->set_version(std::string(config::Version()));
  request.mutable_worker()->mutable_device()->set_product("cpu");
  request.mutable_worker()->mutable_device()->add_dialects(v1::DIALECT_OPENCL);
  request.mutable_worker()->set_isolation_level(isolation);
  {
    absl::MutexLock lock(&mu_);
    request.set_instance_id(absl::StrCat("instance-", instance_));
    if (lease_.id().empty()) {
      request.mutable_idle();
    } else {
      request.mutable_completed()->set_lease_id(lease_.id());
      *request.mutable_completed()->mutable_result() = work(lease_);
    }
  }
  coordinator.Synchronize(request, /*identity=*/"",
                          [this, &coordinator](absl::StatusOr<v1::SynchronizeResponse> response) {
                            Take(coordinator, response);
                          });
}

void FakeWorker::Take(Coordinator& coordinator,
                      const absl::StatusOr<v1::SynchronizeResponse>& response) {
  // Until it is attached again; a real worker would call again after a while.
  if (!response.ok()) return;
  {
    absl::MutexLock lock(&mu_);
    const bool is_new = response->has_lease() && response->lease().id() != lease_.id();
    lease_ = response->lease();
    if (is_new) ++executions_[lease_.candidate().empty() ? lease_.job() : lease_.candidate()];
  }
  if (!works_apart) return Call(coordinator);
  thread_ = std::jthread([this, &coordinator] { Call(coordinator); });
}

void CrashingStore::CrashAt(int count, bool is_committed) {
  absl::MutexLock lock(&mu_);
  crash_at_ = commits_ + count;
  is_committed_ = is_committed;
}

void CrashingStore::Revive() {
  absl::MutexLock lock(&mu_);
  is_dead_ = false;
  crash_at_ = 0;
  is_full_ = false;
  full_at_ = 0;
}

void CrashingStore::FillAt(int count) {
  absl::MutexLock lock(&mu_);
  full_at_ = commits_ + count;
}

bool CrashingStore::is_full() const {
  absl::MutexLock lock(&mu_);
  return is_full_;
}

void CrashingStore::KeepJob(const std::string& name) {
  absl::MutexLock lock(&mu_);
  kept_job_ = name;
}

bool CrashingStore::is_dead() const {
  absl::MutexLock lock(&mu_);
  return is_dead_;
}

int CrashingStore::commits() const {
  absl::MutexLock lock(&mu_);
  return commits_;
}

absl::Status CrashingStore::Alive() const {
  absl::MutexLock lock(&mu_);
  return is_dead_ ? absl::AbortedError("the store is dead") : absl::OkStatus();
}

absl::Status CrashingStore::Commit(const store::Write& write) {
  absl::MutexLock lock(&mu_);
  if (is_dead_) return absl::AbortedError("the store is dead");
  if (write.is_job_deleted && write.job_name == kept_job_) {
    return absl::InternalError("the job cannot be read");
  }
  if (commits_ + 1 == full_at_) is_full_ = true;
  if (is_full_) return absl::ResourceExhaustedError("the store is full");
  if (++commits_ == crash_at_) {
    is_dead_ = true;
    if (is_committed_) store_.Commit(write).IgnoreError();  // Its caller has died.
    return absl::AbortedError("the store has died");
  }
  return store_.Commit(write);
}

absl::StatusOr<v1::Job> CrashingStore::LookupJob(const std::string& name) {
  MTMC_RETURN_IF_ERROR(Alive());
  return store_.LookupJob(name);
}

absl::StatusOr<v1::Job::State> CrashingStore::LookupState(const std::string& job) {
  MTMC_RETURN_IF_ERROR(Alive());
  return store_.LookupState(job);
}

absl::StatusOr<store::JobPage> CrashingStore::ListJobs(const store::JobQuery& query) {
  MTMC_RETURN_IF_ERROR(Alive());
  return store_.ListJobs(query);
}

absl::StatusOr<v1::Candidate> CrashingStore::LookupCandidate(const std::string& name) {
  MTMC_RETURN_IF_ERROR(Alive());
  return store_.LookupCandidate(name);
}

absl::StatusOr<store::CandidatePage> CrashingStore::ListCandidates(
    const store::CandidateQuery& query) {
  MTMC_RETURN_IF_ERROR(Alive());
  return store_.ListCandidates(query);
}

absl::StatusOr<std::vector<v1::JobEvent>> CrashingStore::ReadEvents(const std::string& job,
                                                                    int64_t after, int limit) {
  MTMC_RETURN_IF_ERROR(Alive());
  return store_.ReadEvents(job, after, limit);
}

absl::StatusOr<std::vector<store::Compaction>> CrashingStore::FindCompactions(absl::Time end,
                                                                              int limit) {
  MTMC_RETURN_IF_ERROR(Alive());
  return store_.FindCompactions(end, limit);
}

absl::StatusOr<std::optional<store::EvaluationRecord>> CrashingStore::FindEvaluation(
    const std::string& fingerprint) {
  MTMC_RETURN_IF_ERROR(Alive());
  return store_.FindEvaluation(fingerprint);
}

absl::StatusOr<std::optional<v1::Inspection>> CrashingStore::FindInspection(
    const std::string& key) {
  MTMC_RETURN_IF_ERROR(Alive());
  return store_.FindInspection(key);
}

absl::StatusOr<std::vector<v1::TunedRecord>> CrashingStore::FindRecords(
    const std::string& project, const std::vector<std::string>& anchors) {
  MTMC_RETURN_IF_ERROR(Alive());
  return store_.FindRecords(project, anchors);
}

absl::StatusOr<v1::TunedRecord> CrashingStore::LookupRecord(const std::string& name) {
  MTMC_RETURN_IF_ERROR(Alive());
  return store_.LookupRecord(name);
}

absl::StatusOr<store::RecordPage> CrashingStore::ListRecords(const store::RecordQuery& query) {
  MTMC_RETURN_IF_ERROR(Alive());
  return store_.ListRecords(query);
}

absl::StatusOr<store::QuotaAccount> CrashingStore::FindQuota(const std::string& job,
                                                             store::QuotaResource resource) {
  MTMC_RETURN_IF_ERROR(Alive());
  return store_.FindQuota(job, resource);
}

absl::StatusOr<std::vector<store::ProjectQuota>> CrashingStore::ListQuotas(
    const std::string& project) {
  MTMC_RETURN_IF_ERROR(Alive());
  return store_.ListQuotas(project);
}

absl::StatusOr<store::Fleet> CrashingStore::ReadFleet() {
  MTMC_RETURN_IF_ERROR(Alive());
  return store_.ReadFleet();
}

}  // namespace mtmc::coordinator
