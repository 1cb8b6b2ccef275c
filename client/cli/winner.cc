// SPDX-License-Identifier: Apache-2.0
#include "client/cli/winner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/job_view.h"
#include "client/cli/output.h"
#include "client/export/exporter.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"

namespace mtmc::client {

std::string JobName(const std::string& project, const std::string& typed) {
  if (absl::StartsWith(typed, "projects/")) return typed;
  if (absl::StartsWith(typed, "jobs/")) return absl::StrCat("projects/", project, "/", typed);
  return absl::StrCat("projects/", project, "/jobs/", typed);
}

std::string CandidateName(const std::string& project, const std::string& typed) {
  if (absl::StrContains(typed, "/candidates/") || !absl::StrContains(typed, "/") ||
      absl::StartsWith(typed, "projects/") || absl::StartsWith(typed, "jobs/")) {
    return JobName(project, typed);
  }
  const size_t slash = typed.rfind('/');
  return absl::StrCat(JobName(project, typed.substr(0, slash)), "/candidates/",
                      typed.substr(slash + 1));
}

absl::StatusOr<v1::Candidate> FindCandidate(Api& api, const std::string& name) {
  if (absl::StrContains(name, "/candidates/")) return api.GetCandidate(name);
  MTMC_ASSIGN_OR_RETURN(const v1::Job job, api.GetJob(name));
  if (!job.best_candidate().empty()) return api.GetCandidate(job.best_candidate());
  return rpc::MakeError(
      absl::StatusCode::kFailedPrecondition, "NO_CORRECT_CANDIDATE",
      absl::StrCat(name, " has no correct candidate yet; see 'mtmc candidates list ",
                   ShortName(name), "'"));
}

absl::StatusOr<std::string> ExportText(Api& api, const v1::Candidate& candidate) {
  const std::string job_name = candidate.name().substr(0, candidate.name().find("/candidates/"));
  MTMC_ASSIGN_OR_RETURN(const v1::Job job, api.GetJob(job_name));
  ExportInput input;
  MTMC_ASSIGN_OR_RETURN(input.problem_source, api.Download(job.problem().source()));
  MTMC_ASSIGN_OR_RETURN(input.program, api.Download(candidate.program()));
  input.tuned = {candidate.evaluation().tuned().begin(), candidate.evaluation().tuned().end()};
  input.graph = &job.inspection().graph();
  input.provenance = absl::StrCat(candidate.name(), " on ", job.device().product());
  if (!candidate.evaluation().comparisons().empty()) {
    absl::StrAppend(&input.provenance, ", ",
                    FormatSpeedup(candidate.evaluation().comparisons(0).speedup()),
                    " over the baseline there");
  }
  const auto& flaws = job.inspection().flaws();
  if (std::find(flaws.begin(), flaws.end(), "python_state") != flaws.end()) {
    input.remarks.emplace_back(
        "Model.forward changes attributes that are no tensors of its own, such as counters and "
        "lists;\n# ModelNew leaves them as the constructor made them, in each call.");
  }
  return ExportPython(input);
}

}  // namespace mtmc::client
