// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/job.pb.h"

namespace mtmc::client {

// A job as its events tell it: one line per finished trial as it happens, and a
// summary at the end.
//
//   trial  action                                outcome   time      speedup
//       0  start                                 slower    912 ms    0.40x
//       1  fuse mul, add, gelu (lines 12-18)     faster    98.2 ms   3.67x
//
// On a terminal a last line shows what is under way and is rewritten; elsewhere
// only finished lines are printed. Thread-compatible.
class JobView {
 public:
  // Borrows the stream. `is_live` rewrites the last line.
  JobView(std::ostream& out, bool is_live);

  // REQUIRES: events in order of sequence; repeated ones are ignored.
  void Observe(const v1::JobEvent& event);

  // The log is another one than what was shown; its events come from the first on.
  void StartOver();

  // Redraws the live line; call a few times a second.
  void Tick();

  // The verdict table and the actions that led to the best candidate; all that was found of
  // a program that the user wrote.
  void PrintSummary();

  // Sequence of the last event seen.
  int64_t cursor() const { return cursor_; }

  // As last seen; absent before the first event.
  const std::optional<v1::Job>& job() const { return job_; }

  bool has_ended() const;

  // Best candidate with its ancestors, start first; empty without a best one.
  std::vector<v1::Candidate> WinningLineage() const;

 private:
  void ObserveJob(const v1::Job& job);
  void ObserveCandidate(const v1::Candidate& candidate);
  void PrintConfirmation(const v1::Candidate& candidate);
  void PrintHead();
  // Short name of the first candidate with the same program, whose evaluation this one
  // has; empty for a program of its own.
  std::string KnownAs(const v1::Candidate& candidate) const;
  void PrintLine(const std::string& line);
  void EraseLiveLine();

  std::ostream& out_;
  const bool is_live_;
  int64_t cursor_ = 0;
  std::optional<v1::Job> job_;
  std::map<std::string, v1::Candidate> candidates_;
  bool has_head_ = false;
  // Width of the live line on the screen; 0 when there is none.
  size_t live_width_ = 0;
  int ticks_ = 0;
  std::string activity_;
};

// One word for what became of a candidate, such as `faster` or `wrong`.
std::string OutcomeOf(const v1::Candidate& candidate);

// Why the job ended, such as `trials`; `-` while it has not.
std::string EndReasonText(const v1::Job& job);

// Last segment of a resource name.
std::string ShortName(const std::string& resource_name);

}  // namespace mtmc::client
