// SPDX-License-Identifier: Apache-2.0
#include "client/cli/job_view.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/evaluation_view.h"
#include "client/cli/output.h"
#include "client/cli/profile_view.h"
#include "common/base/enum_word.h"

namespace mtmc::client {
namespace {

constexpr int kActionWidth = 58;
constexpr std::array<const char*, 4> kSpinner = {"|", "/", "-", "\\"};

std::string Shortened(const std::string& text, size_t width) {
  return text.size() <= width ? text : absl::StrCat(text.substr(0, width - 3), "...");
}

std::string Coloured(const std::string& outcome) {
  if (outcome == "faster") return Green(outcome);
  if (outcome == "same" || outcome == "slower" || outcome == "ambiguous") return outcome;
  return Red(outcome);
}

// Pads to `width` by what a terminal shows, so that colours do not shift columns.
std::string Padded(const std::string& shown, const std::string& styled, size_t width) {
  return shown.size() >= width ? styled : styled + std::string(width - shown.size(), ' ');
}

}  // namespace

std::string ShortName(const std::string& resource_name) {
  return resource_name.substr(resource_name.rfind('/') + 1);
}

std::string EndReasonText(const v1::Job& job) {
  if (job.end_reason() == v1::Job::END_REASON_UNSPECIFIED) return "-";
  return base::EnumWord(v1::Job::EndReason_Name(job.end_reason()), "END_REASON_");
}

std::string OutcomeOf(const v1::Candidate& candidate) {
  if (candidate.state() == v1::Candidate::STATE_REJECTED) return "no program";
  const v1::Evaluation& evaluation = candidate.evaluation();
  if (evaluation.has_failure()) {
    std::string kind = base::EnumWord(v1::Failure::Kind_Name(evaluation.failure().kind()), "KIND_");
    std::replace(kind.begin(), kind.end(), '_', ' ');
    return kind;
  }
  if (evaluation.comparisons().empty()) return "pending";
  return base::EnumWord(v1::Comparison::Outcome_Name(evaluation.comparisons(0).outcome()),
                        "OUTCOME_");
}

JobView::JobView(std::ostream& out, bool is_live) : out_(out), is_live_(is_live) {}

void JobView::Observe(const v1::JobEvent& event) {
  if (event.sequence() <= cursor_) return;
  cursor_ = event.sequence();
  if (event.has_job()) {
    ObserveJob(event.job());
  } else if (event.has_candidate()) {
    ObserveCandidate(event.candidate());
  } else if (!event.notice().empty()) {
    PrintLine(Dim(absl::StrCat("       ", event.notice())));
  }
  Tick();
}

void JobView::StartOver() {
  PrintLine(Dim("       the service has lost what was shown, as after a restore: from the start"));
  cursor_ = 0;
  job_.reset();
  candidates_.clear();
  has_head_ = false;
}

void JobView::ObserveJob(const v1::Job& job) {
  const bool had_inspection = job_ && job_->has_inspection();
  v1::Inspection kept;
  if (had_inspection && !job.has_inspection()) kept = job_->inspection();
  job_ = job;
  if (had_inspection && !job.has_inspection()) *job_->mutable_inspection() = std::move(kept);
  if (!had_inspection && job_->has_inspection()) {
    std::string line = "traced";
    for (const auto& baseline : job_->inspection().baselines()) {
      absl::StrAppend(&line, "; ", BaselineName(baseline.baseline()), " ",
                      FormatSeconds(baseline.median_seconds()));
    }
    if (!job_->device().product().empty()) absl::StrAppend(&line, " on ", job_->device().product());
    PrintLine(line);
    if (!job_->inspection().passing_probes().empty()) {
      std::string probes;
      for (const std::string& probe : job_->inspection().passing_probes()) {
        absl::StrAppend(&probes, probes.empty() ? "" : ", ", probe);
      }
      PrintLine(Red(absl::StrCat("degenerate problem: ", probes,
                                 " would pass as a result; do not trust its speedups")));
    }
  }
  if (job.state() == v1::Job::STATE_PENDING) activity_ = "waiting for a worker";
  if (job.state() == v1::Job::STATE_PAUSED) activity_ = "paused";
  if (job.state() == v1::Job::STATE_RUNNING && activity_ == "paused") activity_ = "";
  if (job.state() == v1::Job::STATE_RUNNING && candidates_.empty()) {
    activity_ =
        job_->has_inspection() ? "writing the start program" : "tracing and timing the reference";
  }
}

void JobView::PrintHead() {
  if (has_head_) return;
  has_head_ = true;
  PrintLine(Bold(absl::StrFormat("trial  %-*s  %-14s  %9s  %8s", kActionWidth, "action", "outcome",
                                 "time", "speedup")));
}

// Of a candidate whose line is there.
void JobView::PrintConfirmation(const v1::Candidate& candidate) {
  const v1::Evaluation& evaluation = candidate.evaluation();
  const std::string trial = absl::StrCat("       trial ", candidate.trial());
  if (evaluation.has_failure()) {
    PrintLine(absl::StrCat(trial, ", asked all that winners are: ", Red(OutcomeOf(candidate)), " ",
                           Dim(Shortened(evaluation.failure().message(), 60))));
  } else if (!evaluation.comparisons().empty()) {
    PrintLine(Dim(absl::StrCat(trial, " confirmed: ", OutcomeOf(candidate), " ",
                               FormatSpeedup(evaluation.comparisons(0).speedup()))));
  }
}

void JobView::ObserveCandidate(const v1::Candidate& candidate) {
  const bool was_done = candidates_.contains(candidate.name()) &&
                        (candidates_[candidate.name()].state() == v1::Candidate::STATE_EVALUATED ||
                         candidates_[candidate.name()].state() == v1::Candidate::STATE_REJECTED);
  candidates_[candidate.name()] = candidate;
  const bool is_done = candidate.state() == v1::Candidate::STATE_EVALUATED ||
                       candidate.state() == v1::Candidate::STATE_REJECTED;
  const std::string action = candidate.has_action() ? candidate.action().text() : "start";
  if (!is_done) {
    activity_ = absl::StrCat("trial ", candidate.trial(), ": ", action);
    return;
  }
  if (was_done) return PrintConfirmation(candidate);
  PrintHead();
  const std::string outcome = OutcomeOf(candidate);
  const v1::Evaluation& evaluation = candidate.evaluation();
  std::string line = absl::StrFormat("%5d  %-*s  ", candidate.trial(), kActionWidth,
                                     Shortened(action, kActionWidth));
  absl::StrAppend(&line, Padded(outcome, Coloured(outcome), 14), "  ");
  if (!evaluation.comparisons().empty()) {
    absl::StrAppendFormat(&line, "%9s  %8s",
                          FormatSeconds(evaluation.measurement().median_seconds()),
                          FormatSpeedup(evaluation.comparisons(0).speedup()));
  } else if (evaluation.has_failure()) {
    absl::StrAppend(&line, Dim(Shortened(evaluation.failure().message(), 60)));
  } else {
    absl::StrAppend(&line, Dim(Shortened(candidate.coder_failure(), 60)));
  }
  if (const std::string known = KnownAs(candidate); !known.empty()) {
    absl::StrAppend(&line, "  ", Dim(absl::StrCat("as ", known)));
  }
  PrintLine(line);
  activity_ = "choosing the next action";
}

std::string JobView::KnownAs(const v1::Candidate& candidate) const {
  if (!candidate.evaluation().is_cached()) return "";
  const v1::Candidate* first = nullptr;
  for (const auto& [name, other] : candidates_) {
    if (other.program().sha256() == candidate.program().sha256() &&
        other.trial() < candidate.trial() && (first == nullptr || other.trial() < first->trial())) {
      first = &other;
    }
  }
  return first == nullptr ? "" : ShortName(first->name());
}

void JobView::PrintLine(const std::string& line) {
  EraseLiveLine();
  out_ << line << "\n" << std::flush;
}

void JobView::EraseLiveLine() {
  if (live_width_ > 0) out_ << "\r\033[K";
  live_width_ = 0;
}

void JobView::Tick() {
  if (!is_live_ || has_ended() || activity_.empty()) return;
  EraseLiveLine();
  const std::string line = absl::StrCat(kSpinner[static_cast<size_t>(ticks_++) % kSpinner.size()],
                                        " ", Shortened(activity_, 70));
  out_ << line << std::flush;
  live_width_ = line.size();
}

bool JobView::has_ended() const {
  return job_ &&
         (job_->state() == v1::Job::STATE_SUCCEEDED || job_->state() == v1::Job::STATE_FAILED ||
          job_->state() == v1::Job::STATE_CANCELLED);
}

std::vector<v1::Candidate> JobView::WinningLineage() const {
  std::vector<v1::Candidate> lineage;
  if (!job_) return lineage;
  auto next = candidates_.find(job_->best_candidate());
  while (next != candidates_.end()) {
    lineage.push_back(next->second);
    if (next->second.parents().empty()) break;
    next = candidates_.find(next->second.parents(0));
  }
  std::reverse(lineage.begin(), lineage.end());
  return lineage;
}

void JobView::PrintSummary() {
  EraseLiveLine();
  if (!job_) return;
  out_ << "\n";
  const bool is_judged = job_->search().has_evaluate() && candidates_.size() == 1 &&
                         candidates_.begin()->second.has_evaluation();
  if (is_judged) {
    const v1::Evaluation& evaluation = candidates_.begin()->second.evaluation();
    PrintEvaluation(evaluation, out_);
    PrintProfile(evaluation.profile(), out_);
    return;
  }
  if (job_->has_failure()) {
    out_ << Red(absl::StrCat("failed: ", job_->failure().message()));
    if (job_->failure().line() > 0) out_ << " (line " << job_->failure().line() << ")";
    out_ << " [" << job_->failure().reason() << "]\n";
    return;
  }
  const std::vector<v1::Candidate> lineage = WinningLineage();
  if (lineage.empty()) {
    out_ << "no correct candidate; ended by " << EndReasonText(*job_) << "\n";
    return;
  }
  const v1::Evaluation& best = lineage.back().evaluation();
  std::vector<std::string> headers = ComparisonHeaders();
  headers.insert(headers.begin(), "problem");
  Table table(std::move(headers));
  for (const auto& comparison : best.comparisons()) {
    std::vector<std::string> cells = ComparisonCells(comparison, best.measurement());
    cells.insert(cells.begin(), job_->problem().display_name());
    table.AddRow(std::move(cells));
  }
  table.Print(out_);
  if (!best.profile().summary().empty()) out_ << "\n" << best.profile().summary() << "\n";
  out_ << "\nactions applied (" << ShortName(job_->best_candidate()) << " of " << candidates_.size()
       << " candidates, ended by " << EndReasonText(*job_) << "):\n";
  for (const v1::Candidate& candidate : lineage) {
    if (candidate.has_action()) out_ << "  " << candidate.action().text() << "\n";
  }
  if (lineage.size() == 1) out_ << "  none: the start program is the best\n";
}

}  // namespace mtmc::client
