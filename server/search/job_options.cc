// SPDX-License-Identifier: Apache-2.0
#include "server/search/job_options.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/rpc/error.h"
#include "google/rpc/error_details.pb.h"

namespace mtmc::search {
namespace {

constexpr int kDefaultMaxSteps = 8;
constexpr int kDefaultMaxTrials = 16;
constexpr int kDefaultWallTimeSeconds = 3600;
constexpr double kDefaultSpeedOfLight = 0.95;
// Far beyond any useful search; a typo ends here instead of in a full disk.
constexpr int kMaxTrials = 100'000;
constexpr int kMaxSteps = 1'000;
constexpr int kMaxVariants = 10'000;
// As many as a program may name: less would leave out the end of a legal sweep.
constexpr int kDefaultVariants = 64;
constexpr int kMaxHiddenSeeds = 100;
constexpr double kMaxTemperature = 1e3;

// Collects what is wrong, so that a caller sees all of it at once.
class Checker {
 public:
  void Refuse(std::string field, std::string description) {
    fields_.push_back(absl::StrCat(field, " ", description));
    auto* violation = details_.add_field_violations();
    violation->set_field(std::move(field));
    violation->set_description(std::move(description));
  }

  void Require(bool holds, const char* field, std::string description) {
    if (!holds) Refuse(field, std::move(description));
  }

  // Sets an empty or unset value to its default and checks the range.
  template <class T>
  T Ranged(const char* field, T value, T standard, T low, T high) {
    const T effective = value == T{} ? standard : value;
    // Written so that NaN is refused.
    if (!(effective >= low && effective <= high)) {
      Refuse(field, absl::StrCat("is ", value, ", must be between ", low, " and ", high));
    }
    return effective;
  }

  std::string OneOf(const char* field, const std::string& value,
                    std::initializer_list<const char*> allowed) {
    if (value.empty()) return *allowed.begin();
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
      Refuse(field,
             absl::StrCat("is \"", value, "\", must be one of ", absl::StrJoin(allowed, ", ")));
    }
    return value;
  }

  absl::Status ToStatus() const {
    if (fields_.empty()) return absl::OkStatus();
    absl::Status status = rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_JOB",
                                         absl::StrJoin(fields_, "; "));
    status.SetPayload("type.googleapis.com/google.rpc.BadRequest",
                      absl::Cord(details_.SerializeAsString()));
    return status;
  }

 private:
  std::vector<std::string> fields_;
  google::rpc::BadRequest details_;
};

void ResolveProblem(v1::Problem& problem, Checker& check) {
  check.Require(base::Digest{problem.source().sha256()}.is_valid(), "job.problem.source",
                "must be the digest of an uploaded Python file");
  check.Require(problem.source().size_bytes() > 0, "job.problem.source.size_bytes",
                "must be the length of the uploaded file");
  check.Require(
      v1::Precision_IsValid(problem.precision()), "job.problem.precision",
      absl::StrCat("is ", static_cast<int>(problem.precision()), ", which is no precision class"));
  if (problem.precision() == v1::PRECISION_UNSPECIFIED) {
    problem.set_precision(v1::PRECISION_KERNELBENCH);
  }
}

void ResolveStrategy(v1::SearchOptions& search, Checker& check) {
  if (search.strategy_case() == v1::SearchOptions::STRATEGY_NOT_SET) search.mutable_mtmc();
  if (search.has_random()) {
    v1::RandomStrategy& random = *search.mutable_random();
    random.set_max_steps(check.Ranged("job.search.random.max_steps", random.max_steps(),
                                      kDefaultMaxSteps, 1, kMaxSteps));
  }
  if (!search.has_mtmc()) return;
  v1::MtmcStrategy& mtmc = *search.mutable_mtmc();
  mtmc.set_policy(check.OneOf("job.search.mtmc.policy", mtmc.policy(), {"rules", "lm"}));
  mtmc.set_max_steps(
      check.Ranged("job.search.mtmc.max_steps", mtmc.max_steps(), kDefaultMaxSteps, 1, kMaxSteps));
  mtmc.set_temperature(
      check.Ranged("job.search.mtmc.temperature", mtmc.temperature(), 1.0, 0.0, kMaxTemperature));
}

void ResolveSearch(v1::SearchOptions& search, Checker& check) {
  ResolveStrategy(search, check);
  search.set_coder(check.OneOf("job.search.coder", search.coder(), {"builtin", "llm"}));
  search.set_patience(check.Ranged("job.search.patience", search.patience(), 0, 0, kMaxTrials));
  search.set_speed_of_light_ratio(check.Ranged("job.search.speed_of_light_ratio",
                                               search.speed_of_light_ratio(), kDefaultSpeedOfLight,
                                               0.0, 10.0));
  if (!search.has_allow_library()) search.set_allow_library(true);
  if (!search.has_allow_simplify()) search.set_allow_simplify(true);
}

void ResolveBudget(v1::Budget& budget, Checker& check) {
  budget.set_max_trials(
      check.Ranged("job.budget.max_trials", budget.max_trials(), kDefaultMaxTrials, 1, kMaxTrials));
  check.Require(budget.max_tokens() >= 0, "job.budget.max_tokens",
                absl::StrCat("is ", budget.max_tokens(), ", must be at least 0"));
  if (!budget.has_max_wall_time()) {
    budget.mutable_max_wall_time()->set_seconds(kDefaultWallTimeSeconds);
  }
  const auto& wall_time = budget.max_wall_time();
  check.Require(wall_time.seconds() > 0 || (wall_time.seconds() == 0 && wall_time.nanos() > 0),
                "job.budget.max_wall_time", "must be positive");
}

void CheckTimeout(const char* field, bool is_set, const google::protobuf::Duration& timeout,
                  Checker& check) {
  check.Require(!is_set || timeout.seconds() > 0 || timeout.nanos() > 0, field,
                "must be positive or unset");
}

// A candidate that computes with less precision is shown against PyTorch doing the
// same, too.
v1::Baseline LikeBaseline(v1::Precision precision) {
  switch (precision) {
    case v1::PRECISION_TF32:
      return v1::BASELINE_EAGER_TF32;
    case v1::PRECISION_HALF:
      return v1::BASELINE_EAGER_AUTOCAST;
    default:
      return v1::BASELINE_EAGER;
  }
}

void ResolveBaselines(v1::Precision precision, v1::EvaluationOptions& options) {
  if (options.baselines().empty()) options.add_baselines(v1::BASELINE_EAGER);
  const v1::Baseline like = LikeBaseline(precision);
  const auto& baselines = options.baselines();
  const bool has_like = std::find(baselines.begin(), baselines.end(), like) != baselines.end();
  if (like != v1::BASELINE_EAGER && !has_like) options.add_baselines(like);
}

void ResolveEvaluation(v1::Precision precision, v1::EvaluationOptions& options, Checker& check) {
  ResolveBaselines(precision, options);
  for (const int baseline : options.baselines()) {
    check.Require(v1::Baseline_IsValid(baseline) && baseline != v1::BASELINE_UNSPECIFIED,
                  "job.evaluation.baselines",
                  absl::StrCat("has ", baseline, ", which is no baseline"));
  }
  check.Require(v1::Isolation_IsValid(options.min_isolation()), "job.evaluation.min_isolation",
                absl::StrCat("is ", options.min_isolation(), ", which is no level"));
  CheckTimeout("job.evaluation.build_timeout", options.has_build_timeout(), options.build_timeout(),
               check);
  CheckTimeout("job.evaluation.verify_timeout", options.has_verify_timeout(),
               options.verify_timeout(), check);
  CheckTimeout("job.evaluation.tune_timeout", options.has_tune_timeout(), options.tune_timeout(),
               check);
  CheckTimeout("job.evaluation.measure_timeout", options.has_measure_timeout(),
               options.measure_timeout(), check);
  options.set_max_variants(check.Ranged("job.evaluation.max_variants", options.max_variants(),
                                        kDefaultVariants, 1, kMaxVariants));
  options.set_hidden_seeds(
      check.Ranged("job.evaluation.hidden_seeds", options.hidden_seeds(), 3, 1, kMaxHiddenSeeds));
  // 0 stays: how many are enough depends on how long they take, which the worker sees.
  if (options.min_samples() != 0) {
    check.Ranged("job.evaluation.min_samples", options.min_samples(), 0, 3, 100'000);
  }
  options.set_max_noise_ratio(
      check.Ranged("job.evaluation.max_noise_ratio", options.max_noise_ratio(), 0.005, 1e-6, 1.0));
}

}  // namespace

absl::StatusOr<v1::Job> ResolveJob(const v1::Job& job) {
  v1::Job resolved;
  *resolved.mutable_problem() = job.problem();
  *resolved.mutable_search() = job.search();
  *resolved.mutable_budget() = job.budget();
  *resolved.mutable_evaluation() = job.evaluation();
  *resolved.mutable_worker_selector() = job.worker_selector();
  resolved.set_dialect(job.dialect());
  Checker check;
  if (job.has_start_program()) {
    *resolved.mutable_start_program() = job.start_program();
    check.Require(base::Digest{job.start_program().sha256()}.is_valid(), "job.start_program",
                  "must be the digest of an uploaded program, or unset");
  }
  check.Require(job.has_start_program() || !job.search().has_evaluate(), "job.start_program",
                "must be set for the strategy evaluate");
  ResolveProblem(*resolved.mutable_problem(), check);
  ResolveSearch(*resolved.mutable_search(), check);
  ResolveBudget(*resolved.mutable_budget(), check);
  ResolveEvaluation(resolved.problem().precision(), *resolved.mutable_evaluation(), check);
  check.Require(v1::Dialect_IsValid(job.dialect()) && job.dialect() != v1::DIALECT_TRITON,
                "job.dialect", "must be unset, DIALECT_OPENCL or DIALECT_CUDA");
  const absl::Status status = check.ToStatus();
  if (!status.ok()) return status;
  return resolved;
}

}  // namespace mtmc::search
