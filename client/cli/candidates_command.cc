// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands.h"
#include "client/cli/evaluation_view.h"
#include "client/cli/job_view.h"
#include "client/cli/line_diff.h"
#include "client/cli/output.h"
#include "client/cli/profile_view.h"
#include "client/cli/winner.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"

namespace mtmc::client {
namespace {

std::string ActionText(const v1::Candidate& candidate) {
  return candidate.has_action() ? candidate.action().text() : "start";
}

std::string TimeText(const v1::Candidate& candidate) {
  return candidate.evaluation().has_measurement()
             ? FormatSeconds(candidate.evaluation().measurement().median_seconds())
             : "-";
}

std::string SpeedupText(const v1::Candidate& candidate) {
  return candidate.evaluation().comparisons().empty()
             ? "-"
             : FormatSpeedup(candidate.evaluation().comparisons(0).speedup());
}

absl::StatusOr<ExitCode> List(const CandidatesOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  const v1::CandidateView view =
      options.common.is_json ? v1::CANDIDATE_VIEW_FULL : v1::CANDIDATE_VIEW_BASIC;
  MTMC_ASSIGN_OR_RETURN(const std::vector<v1::Candidate> candidates,
                        session.api->ListCandidates(JobName(options.common.project, options.name),
                                                    view, options.filter));
  if (options.common.is_json) {
    v1::ListCandidatesResponse response;
    response.mutable_candidates()->Assign(candidates.begin(), candidates.end());
    PrintJson(response, std::cout);
    return kExitOk;
  }
  Table table({"candidate", "parent", "action", "outcome", ">time", ">speedup"});
  for (const v1::Candidate& candidate : candidates) {
    table.AddRow({ShortName(candidate.name()),
                  candidate.parents().empty() ? "-" : ShortName(candidate.parents(0)),
                  ActionText(candidate), OutcomeOf(candidate), TimeText(candidate),
                  SpeedupText(candidate)});
  }
  table.Print(std::cout);
  return kExitOk;
}

// Who wrote it: nothing for the built-in coder, which costs nothing.
void PrintUse(const v1::TokenUse& use) {
  if (use.model().empty()) return;
  std::cout << "\n"
            << Bold("written by") << " " << use.model() << ", " << use.input_tokens() << " + "
            << use.output_tokens() << " tokens";
  if (use.has_cost_micros()) std::cout << ", " << FormatDollars(use.cost_micros());
  std::cout << "\n";
}

// What was said to the language model that wrote it, and what that said.
absl::Status PrintExchange(Api& api, const v1::TokenUse& use) {
  if (use.model().empty()) {
    std::cerr << "no language model was asked for it\n";
    return absl::OkStatus();
  }
  for (const auto& [title, digest] : {std::pair("prompt", use.prompt()), {"reply", use.reply()}}) {
    if (digest.sha256().empty()) continue;
    MTMC_ASSIGN_OR_RETURN(const std::string text, api.Download(digest));
    std::cout << "\n" << Bold(title) << "\n" << text << "\n";
  }
  return absl::OkStatus();
}

void PrintDecision(const v1::Decision& decision) {
  if (decision.choices().empty()) return;
  std::cout << "\n"
            << Bold("decision") << " by " << decision.policy()
            << (decision.is_fallback() ? " (fallback)" : "");
  if (!decision.strategy().empty()) {
    std::cout << " for strategy " << decision.strategy() << " of " << decision.version();
  }
  std::cout << "\n";
  constexpr int kShown = 5;
  for (int i = 0; i < std::min(kShown, decision.choices_size()); ++i) {
    std::cout << absl::StrFormat("  %5.1f %%  %s\n", 100 * decision.choices(i).probability(),
                                 decision.choices(i).action());
  }
}

absl::StatusOr<ExitCode> Show(const CandidatesOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  MTMC_ASSIGN_OR_RETURN(
      const v1::Candidate candidate,
      FindCandidate(*session.api, CandidateName(options.common.project, options.name)));
  if (options.common.is_json) {
    PrintJson(candidate, std::cout);
    return kExitOk;
  }
  const v1::Evaluation& evaluation = candidate.evaluation();
  std::cout << Bold(candidate.name()) << "\n"
            << "  " << ActionText(candidate) << "\n"
            << "  " << OutcomeOf(candidate) << "  " << TimeText(candidate) << "  "
            << SpeedupText(candidate) << "\n";
  PrintEvaluation(evaluation, std::cout);
  PrintUse(candidate.token_use());
  PrintDecision(candidate.decision());
  PrintProfile(evaluation.profile(), std::cout);
  if (options.shows_exchange) {
    MTMC_RETURN_IF_ERROR(PrintExchange(*session.api, candidate.token_use()));
    return kExitOk;
  }
  if (candidate.program().sha256().empty()) return kExitOk;
  MTMC_ASSIGN_OR_RETURN(const std::string program, session.api->Download(candidate.program()));
  std::cout << "\n" << Bold("program") << "\n" << program;
  return kExitOk;
}

absl::StatusOr<ExitCode> Diff(const CandidatesOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  MTMC_ASSIGN_OR_RETURN(
      const v1::Candidate after,
      FindCandidate(*session.api, CandidateName(options.common.project, options.name)));
  std::string before_name = options.other.empty()
                                ? (after.parents().empty() ? "" : after.parents(0))
                                : CandidateName(options.common.project, options.other);
  if (before_name.empty()) {
    return rpc::MakeError(
        absl::StatusCode::kFailedPrecondition, "NO_PARENT",
        absl::StrCat(ShortName(after.name()),
                     " is the start program; name a second candidate to compare with"));
  }
  MTMC_ASSIGN_OR_RETURN(const v1::Candidate before, session.api->GetCandidate(before_name));
  MTMC_ASSIGN_OR_RETURN(const std::string old_text, session.api->Download(before.program()));
  MTMC_ASSIGN_OR_RETURN(const std::string new_text, session.api->Download(after.program()));
  std::cout << "--- " << ShortName(before.name()) << "  " << ActionText(before) << "  "
            << TimeText(before) << "\n"
            << "+++ " << ShortName(after.name()) << "  " << ActionText(after) << "  "
            << TimeText(after) << "\n";
  for (const std::string& line : LineDiff(old_text, new_text)) {
    std::cout << (line.starts_with('+')   ? Green(line)
                  : line.starts_with('-') ? Red(line)
                                          : line)
              << "\n";
  }
  return kExitOk;
}

absl::StatusOr<ExitCode> Export(const CandidatesOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  MTMC_ASSIGN_OR_RETURN(
      const v1::Candidate candidate,
      FindCandidate(*session.api, CandidateName(options.common.project, options.name)));
  MTMC_ASSIGN_OR_RETURN(const std::string text, ExportText(*session.api, candidate));
  if (options.output_file.empty() || options.output_file == "-") {
    std::cout << text;
    return kExitOk;
  }
  MTMC_RETURN_IF_ERROR(base::WriteFileAtomically(options.output_file, text));
  std::cerr << "written to " << options.output_file << "\n";
  return kExitOk;
}

}  // namespace

ExitCode RunCandidatesList(const CandidatesOptions& options) { return Finish(List(options)); }

ExitCode RunCandidatesShow(const CandidatesOptions& options) { return Finish(Show(options)); }

ExitCode RunCandidatesDiff(const CandidatesOptions& options) { return Finish(Diff(options)); }

ExitCode RunExport(const CandidatesOptions& options) { return Finish(Export(options)); }

}  // namespace mtmc::client
