// SPDX-License-Identifier: Apache-2.0
#include "client/cli/job_request.h"

#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/file.h"
#include "common/base/id.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"

namespace mtmc::client {
namespace {

// A problem is source text; this much of it is a mistake.
constexpr uint64_t kMaxSourceBytes = uint64_t{4} << 20;

absl::StatusOr<std::string> ReadSource(const std::string& path, absl::string_view what) {
  if (!std::filesystem::exists(path)) {
    return rpc::MakeError(absl::StatusCode::kNotFound, "FILE_NOT_FOUND",
                          absl::StrCat(what, " file '", path, "' does not exist"));
  }
  auto text = base::ReadFile(path, kMaxSourceBytes);
  if (!text.ok()) {
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "FILE_UNREADABLE",
                          absl::StrCat("cannot read '", path, "': ", text.status().message()));
  }
  if (absl::StripAsciiWhitespace(*text).empty()) {
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "FILE_EMPTY",
                          absl::StrCat(what, " file '", path, "' is empty"));
  }
  return text;
}

// Enumerator `PREFIX_NAME` of a proto enum from what a user typed.
template <typename Enum, typename Parse>
absl::StatusOr<Enum> ParseEnum(const std::string& prefix, const std::string& text,
                               absl::string_view option, absl::string_view choices,
                               const Parse& parse) {
  Enum value;
  if (parse(absl::StrCat(prefix, absl::AsciiStrToUpper(text)), &value)) return value;
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_OPTION",
                        absl::StrCat(option, " is '", text, "', must be one of: ", choices));
}

absl::Status ChooseStrategy(const JobOptions& options, v1::SearchOptions& search) {
  if (!options.program_file.empty()) {
    search.mutable_evaluate();
  } else if (options.strategy == "mtmc") {
    search.mutable_mtmc()->set_policy(options.policy);
    search.mutable_mtmc()->set_max_steps(options.max_steps);
  } else if (options.strategy == "random") {
    search.mutable_random()->set_max_steps(options.max_steps);
  } else if (options.strategy == "greedy") {
    search.mutable_greedy();
  } else {
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_OPTION",
                          absl::StrCat("--strategy is '", options.strategy,
                                       "', must be one of: mtmc, greedy, random"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::CreateJobRequest> MakeJobRequest(Api& api, const CommonOptions& common,
                                                    const JobOptions& options) {
  MTMC_ASSIGN_OR_RETURN(const std::string source, ReadSource(options.file, "problem"));
  v1::CreateJobRequest request;
  request.set_parent(absl::StrCat("projects/", common.project));
  request.set_request_id(base::MakeUuid4());
  v1::Job& job = *request.mutable_job();
  v1::Problem& problem = *job.mutable_problem();
  problem.set_display_name(std::filesystem::path(options.file).stem().string());
  problem.set_seed(options.seed);
  problem.set_randomize_identity_parameters(options.randomize_identity_parameters);
  problem.mutable_fixed()->Assign(options.fixed.begin(), options.fixed.end());
  problem.set_nonfinite(options.judges_nonfinite);
  MTMC_ASSIGN_OR_RETURN(
      const auto precision,
      ParseEnum<v1::Precision>("PRECISION_", options.precision, "--precision",
                               "strict, kernelbench, tf32, half", v1::Precision_Parse));
  problem.set_precision(precision);
  for (const std::string& name : options.baselines) {
    MTMC_ASSIGN_OR_RETURN(
        const auto baseline,
        ParseEnum<v1::Baseline>("BASELINE_", name, "--baseline",
                                "eager, eager_tf32, eager_autocast, compile, compile_max_autotune",
                                v1::Baseline_Parse));
    job.mutable_evaluation()->add_baselines(baseline);
  }
  if (!options.min_isolation.empty()) {
    MTMC_ASSIGN_OR_RETURN(
        const auto isolation,
        ParseEnum<v1::Isolation>("ISOLATION_", options.min_isolation, "--min-isolation",
                                 "process, restricted, confined", v1::Isolation_Parse));
    job.mutable_evaluation()->set_min_isolation(isolation);
  }
  if (!options.dialect.empty()) {
    MTMC_ASSIGN_OR_RETURN(const auto dialect,
                          ParseEnum<v1::Dialect>("DIALECT_", options.dialect, "--dialect",
                                                 "opencl, cuda", v1::Dialect_Parse));
    job.set_dialect(dialect);
  }
  v1::SearchOptions& search = *job.mutable_search();
  MTMC_RETURN_IF_ERROR(ChooseStrategy(options, search));
  search.set_coder(options.coder);
  search.set_model(options.model);
  search.set_seed(options.seed);
  if (options.is_library_forbidden) search.set_allow_library(false);
  if (options.is_simplify_forbidden) search.set_allow_simplify(false);
  search.set_omit_records(options.omits_records);
  job.mutable_budget()->set_max_trials(options.max_trials);
  if (options.max_minutes > 0) {
    job.mutable_budget()->mutable_max_wall_time()->set_seconds(
        static_cast<int64_t>(options.max_minutes * 60));
  }
  if (!options.worker.empty()) job.mutable_worker_selector()->set_worker(options.worker);
  std::string program;
  if (!options.program_file.empty()) {
    MTMC_ASSIGN_OR_RETURN(program, ReadSource(options.program_file, "program"));
  }
  MTMC_ASSIGN_OR_RETURN(*problem.mutable_source(), api.Upload(source));
  if (!program.empty()) {
    MTMC_ASSIGN_OR_RETURN(*job.mutable_start_program(), api.Upload(program));
  }
  return request;
}

}  // namespace mtmc::client
