// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/verifier.h"

#include <algorithm>
#include <array>
#include <random>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mtmc/v1/reference.pb.h"
#include "mtmc/v1/runner.pb.h"
#include "worker/verify/failure.h"

namespace mtmc::worker {
namespace {

// Bytes that make a NaN, a huge and a small value of every floating type, and
// different integers: an element that was not written cannot look right twice.
constexpr std::array<int, 3> kPoison = {0xFF, 0x7B, 0x01};

// Sets of inputs that the runner keeps for timing, the public one included.
constexpr int kKeptSets = 3;

// Number under which the runner keeps inputs that the program has not seen, and
// their seed index, which no verified workload has.
constexpr int64_t kFreshId = 1000;
constexpr int kFreshSeed = 1000;

Verification Failed(v1::Failure failure) {
  Verification result;
  result.verdict = VerdictOf(failure.kind());
  result.failure = std::move(failure);
  return result;
}

// Whether `a` is closer to its bound than `b`, or further beyond it.
bool IsWorse(const v1::OutputError& a, const v1::OutputError& b) {
  if (a.tolerance_allowed() == 0 && b.tolerance_allowed() == 0) {
    return a.tolerance_needed() > b.tolerance_needed();
  }
  return a.tolerance_needed() * b.tolerance_allowed() >
         b.tolerance_needed() * a.tolerance_allowed();
}

// The weaker of two oracles: `fp64`, `strict`, `equal` from strong to weak.
const std::string& Weaker(const std::string& a, const std::string& b) {
  return b == "strict" || a == "equal" || a.empty() ? b : a;
}

bool IsUnchanged(const v1::Workload& workload) {
  return workload.distribution() == v1::DISTRIBUTION_UNSPECIFIED;
}

// Such as `seed 3, times 3`.
std::string ToText(const v1::Workload& workload) {
  constexpr std::string_view kPrefix = "DISTRIBUTION_";
  std::string text = absl::StrCat("seed ", workload.seed_index());
  if (IsUnchanged(workload)) return text;
  std::string name = v1::Distribution_Name(workload.distribution()).substr(kPrefix.size());
  for (char& letter : name) letter = letter == '_' ? ' ' : absl::ascii_tolower(letter);
  return absl::StrCat(text, ", ", name);
}

// Hidden seeds, then every distribution with a seed of its own, then the public
// workload, on which timing goes on.
std::vector<v1::Workload> WorkloadsOf(const Verifier::Options& options) {
  std::vector<v1::Workload> workloads;
  for (int seed = options.hidden_seeds; seed > 0; --seed) {
    workloads.emplace_back().set_seed_index(seed);
  }
  if (options.has_distributions) {
    for (int number = v1::Distribution_MIN + 1; number <= v1::Distribution_MAX; ++number) {
      v1::Workload& workload = workloads.emplace_back();
      workload.set_seed_index(options.hidden_seeds + number);
      workload.set_distribution(static_cast<v1::Distribution>(number));
    }
  }
  workloads.emplace_back();
  return workloads;
}

uint64_t DrawSalt() {
  std::random_device device;
  const uint64_t salt = (uint64_t{device()} << 32) | device();
  return salt == 0 ? 1 : salt;
}

// Keeps the classes that both hold, and the errors of the worse one.
void MergeInto(Verification& all, const Verification& one) {
  std::erase_if(all.satisfied, [&](v1::Precision precision) {
    return std::find(one.satisfied.begin(), one.satisfied.end(), precision) == one.satisfied.end();
  });
  all.kernelbench_allclose = all.kernelbench_allclose && one.kernelbench_allclose;
  for (size_t i = 0; i < std::min(all.errors.size(), one.errors.size()); ++i) {
    if (IsWorse(one.errors[i], all.errors[i])) all.errors[i] = one.errors[i];
  }
}

ReferenceTrouble TroubleOf(const Reply<v1::ReferenceResponse>& reply) {
  using Ending = Reply<v1::ReferenceResponse>::Ending;
  if (reply.ending == Ending::kTimedOut) {
    return {"REFERENCE_TIMEOUT", "the reference process did not answer in time"};
  }
  if (reply.is_answered()) {
    return {reply.response.failure().reason(), reply.response.failure().message()};
  }
  return {"REFERENCE_DIED", absl::StrCat("the reference process ended: ", reply.detail)};
}

}  // namespace

std::optional<v1::Failure> FailureOf(const Reply<v1::RunnerResponse>& reply, v1::Stage stage) {
  using Ending = Reply<v1::RunnerResponse>::Ending;
  switch (reply.ending) {
    case Ending::kAnswered:
      if (!reply.response.has_failure()) return std::nullopt;
      return reply.response.failure();
    case Ending::kDied:
      return MakeFailure(v1::Failure::KIND_CRASH, stage,
                         "the runner process died while it ran the program", reply.detail);
    case Ending::kOutOfMemory:
      return MakeFailure(v1::Failure::KIND_OUT_OF_MEMORY, stage,
                         "the runner process took more of the host's memory than it may",
                         reply.detail);
    case Ending::kKilled:
      return MakeFailure(v1::Failure::KIND_UNSPECIFIED, stage,
                         "the runner process was killed from outside", reply.detail);
    case Ending::kUnavailable:
      return MakeFailure(v1::Failure::KIND_UNSPECIFIED, stage, "no runner process works",
                         reply.detail);
    case Ending::kTimedOut:
      return MakeFailure(v1::Failure::KIND_TIMEOUT, stage, "the program did not finish in time",
                         reply.detail);
    case Ending::kCancelled:
      return MakeFailure(v1::Failure::KIND_TIMEOUT, stage, "the evaluation was called off");
  }
  return std::nullopt;
}

// A prepared workload of the reference process.
struct Verifier::Subject {
  v1::Workload workload;
  // Its handle there.
  int64_t prepared = 0;
  std::string oracle;
  google::protobuf::RepeatedPtrField<v1::SharedTensor> inputs;
};

Verifier::Verifier(RunnerParty& runner, ReferenceParty& reference)
    : runner_(runner), reference_(reference) {}

Verifier::~Verifier() = default;

Verification Verifier::Verify(const Options& options) {
  const absl::Time deadline = absl::Now() + options.timeout;
  kept_.clear();
  kept_subjects_.clear();
  std::optional<Verification> all;
  v1::VerificationSummary checks;
  for (const v1::Workload& workload : WorkloadsOf(options)) {
    if (!Prepare(workload, deadline - absl::Now())) {
      if (trouble_) return {};
      checks.add_dropped(workload.distribution());
      continue;
    }
    // Of three kept sets, the next one cannot be foreseen from the last.
    const bool is_repeated = IsUnchanged(workload) && workload.seed_index() < kKeptSets;
    Verification one = VerifyWorkload(is_repeated, deadline - absl::Now());
    if (trouble_) return {};
    *checks.add_workloads() = workload;
    checks.set_oracle(Weaker(checks.oracle(), current_->oracle));
    if (one.failure) {
      one.checks = std::move(checks);
      return one;
    }
    if (!all) {
      all = std::move(one);
    } else {
      MergeInto(*all, one);
    }
  }
  all->checks = std::move(checks);
  return *std::move(all);
}

bool Verifier::Prepare(const v1::Workload& workload, absl::Duration timeout) {
  current_ = Draw(workload, /*salt=*/0, timeout);
  return current_ != nullptr;
}

std::unique_ptr<Verifier::Subject> Verifier::Draw(const v1::Workload& workload, uint64_t salt,
                                                  absl::Duration timeout) {
  trouble_.reset();
  v1::ReferenceRequest request;
  auto& prepare = *request.mutable_prepare();
  prepare.set_workload(workload.seed_index());
  prepare.set_distribution(workload.distribution());
  prepare.set_salt(salt);
  auto reply = reference_.Call(request, timeout);
  if (!reply.is_answered() || reply.response.has_failure()) {
    trouble_ = TroubleOf(reply);
    return nullptr;
  }
  auto& prepared = *reply.response.mutable_prepared();
  if (!prepared.dropped().empty()) return nullptr;
  auto subject = std::make_unique<Subject>();
  subject->workload = workload;
  subject->prepared = prepared.prepared();
  subject->oracle = prepared.oracle();
  subject->inputs.Swap(prepared.mutable_inputs());
  return subject;
}

Verification Verifier::VerifyAgain(absl::Duration timeout) {
  trouble_.reset();
  kept_.clear();
  kept_subjects_.clear();
  return VerifyWorkload(/*is_repeated=*/false, timeout);
}

std::variant<double, v1::Failure> Verifier::ExecuteAgain(absl::Duration timeout) {
  kept_.clear();
  kept_subjects_.clear();
  const auto reply = runner_.Call(MakeExecute(*current_), timeout);
  if (auto failure = FailureOf(reply, v1::STAGE_VERIFY)) return *std::move(failure);
  return reply.response.outputs().seconds();
}

v1::RunnerRequest Verifier::MakeExecute(const Subject& subject) {
  v1::RunnerRequest request;
  auto& execute = *request.mutable_execute();
  *execute.mutable_inputs() = subject.inputs;
  execute.set_poison(kPoison[static_cast<size_t>(poison_++) % kPoison.size()]);
  return request;
}

Verification Verifier::VerifyWorkload(bool is_repeated, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  v1::RunnerRequest execute = MakeExecute(*current_);
  if (is_repeated) {
    execute.mutable_execute()->set_keep_as(static_cast<int64_t>(kept_.size()) + 1);
    execute.mutable_execute()->set_with_digest(true);
  }
  const auto reply = runner_.Call(execute, timeout);
  if (auto failure = FailureOf(reply, v1::STAGE_VERIFY)) return Failed(*std::move(failure));
  Verification result =
      Compare(*current_, reply.response, /*is_repeat=*/false, deadline - absl::Now());
  if (!is_repeated || result.failure || trouble_) return result;
  Verification repeated = Repeat(reply.response, deadline - absl::Now());
  return repeated.failure || trouble_ ? repeated : result;
}

// A second execution on the same inputs. Equal bytes need no comparison.
Verification Verifier::Repeat(const v1::RunnerResponse& first, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  v1::RunnerRequest execute = MakeExecute(*current_);
  execute.mutable_execute()->set_under_load(true);
  execute.mutable_execute()->set_with_digest(true);
  const auto reply = runner_.Call(execute, timeout);
  if (auto failure = FailureOf(reply, v1::STAGE_VERIFY)) return Failed(*std::move(failure));
  const uint64_t digest = first.outputs().digest();
  const bool is_reproducible = digest != 0 && reply.response.outputs().digest() == digest;
  Verification result;
  if (!is_reproducible) {
    result = Compare(*current_, reply.response, /*is_repeat=*/true, deadline - absl::Now());
    if (trouble_) return {};
    if (result.failure) {
      return Failed(MakeFailure(
          v1::Failure::KIND_NONDETERMINISTIC, v1::STAGE_VERIFY,
          absl::StrCat("two runs on the same inputs disagree: ", result.failure->message())));
    }
  }
  if (digest != 0 && first.outputs().kept() != 0) {
    kept_.push_back({first.outputs().kept(), digest, is_reproducible});
    kept_subjects_.push_back({current_->workload, current_->prepared, current_->oracle, {}});
  }
  return result;
}

Verification Verifier::Recheck(absl::Duration timeout) {
  Verification result = PublishAndCompare(*current_, timeout);
  if (result.failure && result.failure->kind() == v1::Failure::KIND_WRONG_RESULT) {
    result.failure->set_message(
        absl::StrCat("correct at first, wrong after timing: ", result.failure->message()));
  }
  return result;
}

std::optional<FreshInputs> Verifier::PrepareFresh(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  v1::Workload workload;
  workload.set_seed_index(kFreshSeed);
  const auto subject = Draw(workload, DrawSalt(), timeout);
  if (!subject) return std::nullopt;
  v1::RunnerRequest execute = MakeExecute(*subject);
  execute.mutable_execute()->set_keep_as(kFreshId);
  execute.mutable_execute()->set_keep_only(true);
  const auto reply = runner_.Call(execute, deadline - absl::Now());
  const FreshInputs fresh{.id = kFreshId, .prepared = subject->prepared};
  if (FailureOf(reply, v1::STAGE_MEASURE) || reply.response.outputs().kept() != kFreshId) {
    Release(fresh.prepared, deadline - absl::Now());
    return std::nullopt;
  }
  return fresh;
}

Verification Verifier::CheckFresh(const FreshInputs& fresh, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  Subject subject{.workload = {}, .prepared = fresh.prepared, .oracle = {}, .inputs = {}};
  subject.workload.set_seed_index(kFreshSeed);
  Verification result = PublishAndCompare(subject, timeout);
  Release(fresh.prepared, deadline - absl::Now());
  return result;
}

Verification Verifier::CheckKept(int64_t id, absl::Duration timeout) {
  for (size_t i = 0; i < kept_.size(); ++i) {
    if (kept_[i].id == id) return PublishAndCompare(kept_subjects_[i], timeout);
  }
  trouble_ = ReferenceTrouble{"NOT_PREPARED", "no verified inputs are kept under that number"};
  return {};
}

// Frees memory only; a process that cannot answer is found out by the next call.
void Verifier::Release(int64_t prepared, absl::Duration timeout) {
  v1::ReferenceRequest request;
  request.mutable_release()->set_prepared(prepared);
  reference_.Call(request, timeout);
}

Verification Verifier::PublishAndCompare(const Subject& subject, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  trouble_.reset();
  v1::RunnerRequest publish;
  publish.mutable_publish();
  const auto reply = runner_.Call(publish, timeout);
  if (auto failure = FailureOf(reply, v1::STAGE_MEASURE)) return Failed(*std::move(failure));
  Verification result =
      Compare(subject, reply.response, /*is_repeat=*/false, deadline - absl::Now());
  if (result.failure) result.failure->set_stage(v1::STAGE_MEASURE);
  return result;
}

Verification Verifier::Compare(const Subject& subject, const v1::RunnerResponse& outputs,
                               bool is_repeat, absl::Duration timeout) {
  v1::ReferenceRequest request;
  auto& compare = *request.mutable_compare();
  *compare.mutable_outputs() = outputs.outputs().outputs();
  compare.set_prepared(subject.prepared);
  compare.set_is_repeat(is_repeat);
  const auto reply = reference_.Call(request, timeout);
  if (!reply.is_answered() || reply.response.has_failure()) {
    trouble_ = TroubleOf(reply);
    return {};
  }
  const auto& compared = reply.response.compared();
  Verification result;
  result.verdict = v1::Evaluation::VERDICT_CORRECT;
  result.errors.assign(compared.errors().begin(), compared.errors().end());
  for (v1::OutputError& error : result.errors) error.set_workload(ToText(subject.workload));
  for (const int precision : compared.satisfied()) {
    result.satisfied.push_back(static_cast<v1::Precision>(precision));
  }
  result.kernelbench_allclose = compared.kernelbench_allclose() || !IsUnchanged(subject.workload);
  if (!compared.is_correct() || compared.is_unrepeatable()) {
    result.verdict = v1::Evaluation::VERDICT_WRONG;
    result.failure =
        MakeFailure(v1::Failure::KIND_WRONG_RESULT, v1::STAGE_VERIFY,
                    absl::StrCat(compared.message(), " (workload ", ToText(subject.workload), ")"));
  }
  return result;
}

}  // namespace mtmc::worker
