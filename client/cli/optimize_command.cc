// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <iostream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/interrupt.h"
#include "client/cli/job_request.h"
#include "client/cli/job_view.h"
#include "client/cli/output.h"
#include "client/cli/watch.h"
#include "client/cli/winner.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace mtmc::client {
namespace {

void PrintDetached(const Session& session, const std::string& job) {
  std::cerr << "\ndetached; the job goes on";
  if (session.stack) std::cerr << " the next time a stack runs";
  std::cerr << ". Watch it again with:\n  mtmc jobs watch " << ShortName(job) << "\n";
}

std::string OutputPath(const OptimizeOptions& options) {
  if (!options.output_file.empty()) return options.output_file;
  const std::filesystem::path file(options.job.file);
  return (std::filesystem::current_path() / absl::StrCat(file.stem().string(), "_mtmc.py"))
      .string();
}

ExitCode ExitCodeOfJob(const v1::Job& job) {
  if (job.state() == v1::Job::STATE_CANCELLED) return kExitCancelled;
  if (job.state() != v1::Job::STATE_SUCCEEDED) return kExitJobFailed;
  return job.best_speedup() > 1 ? kExitOk : kExitNoImprovement;
}

// Writes the winner and tells where; does nothing without a correct candidate.
absl::Status WriteWinner(const Session& session, const v1::Job& job, const OptimizeOptions& options,
                         std::ostream& out) {
  Api& api = *session.api;
  if (job.best_candidate().empty()) return absl::OkStatus();
  MTMC_ASSIGN_OR_RETURN(const v1::Candidate best, api.GetCandidate(job.best_candidate()));
  MTMC_ASSIGN_OR_RETURN(const std::string text, ExportText(api, best));
  const std::string path = OutputPath(options);
  MTMC_RETURN_IF_ERROR(base::WriteFileAtomically(path, text));
  out << "\nwinner written to " << Bold(path) << "\n\nnext"
      << (session.stack ? ", with 'mtmc up' running in another terminal" : "")
      << ":\n  mtmc candidates show " << ShortName(job.name())
      << "      # the program, its times and its profile\n"
      << "  mtmc candidates diff " << ShortName(job.name())
      << "      # what the last action changed\n";
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> Optimize(const OptimizeOptions& options, bool writes_winner) {
  MTMC_ASSIGN_OR_RETURN(Session session, ConnectOrStart(options.common, options.stack));
  MTMC_ASSIGN_OR_RETURN(const v1::CreateJobRequest request,
                        MakeJobRequest(*session.api, options.common, options.job));
  MTMC_ASSIGN_OR_RETURN(const v1::Job created, session.api->CreateJob(request));
  const bool is_silent = options.common.is_json || options.common.is_quiet;
  std::ostringstream unseen;
  std::ostream& out = is_silent ? static_cast<std::ostream&>(unseen) : std::cout;
  out << Bold(created.problem().display_name()) << "  job " << ShortName(created.name()) << "  at "
      << session.endpoint << "\n";

  JobView view(out, !is_silent && IsInteractive());
  const absl::Status followed = FollowJob(session, created.name(), view, absl::InfiniteDuration());
  if (absl::IsCancelled(followed)) {
    PrintDetached(session, created.name());
    return kExitInterrupted;
  }
  MTMC_RETURN_IF_ERROR(followed);
  MTMC_ASSIGN_OR_RETURN(const v1::Job job, session.api->GetJob(created.name()));
  view.PrintSummary();
  if (writes_winner) MTMC_RETURN_IF_ERROR(WriteWinner(session, job, options, out));
  if (options.common.is_json) PrintJson(job, std::cout);
  return ExitCodeOfJob(job);
}

}  // namespace

ExitCode RunOptimize(const OptimizeOptions& options) {
  return Finish(Optimize(options, /*writes_winner=*/true));
}

ExitCode RunEvaluate(const OptimizeOptions& options) {
  return Finish(Optimize(options, /*writes_winner=*/false));
}

}  // namespace mtmc::client
