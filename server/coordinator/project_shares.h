// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"

namespace mtmc::coordinator {

// How much device time each project has had, so that the one that had least is served
// next: start-time fair queueing with equal weights.
//
// A project's clock is the device time that it used, and never lags behind that of
// whoever is served now while the project asks for nothing: time that it left unused is
// not saved up. A grant is charged what work takes on average and settled once it is
// known what it took, so that many grants at once do not all go to the same project.
// What was used before a restart is forgotten.
//
// Every grant moves a clock on, so that each project that waits is served after finitely
// many others: nobody starves. A value; thread-compatible.
class ProjectShares {
 public:
  // Of `projects/p/jobs/j` `projects/p`; of any other name nothing.
  static std::string ProjectOf(const std::string& job);

  // Lower is sooner. The same for all that never had anything.
  absl::Duration ClockOf(const std::string& project) const;

  // Work of `project` waits that has not waited before.
  void NoteWaiting(const std::string& project);

  // Work of `project` was granted. Returns what it was charged, for Settle.
  absl::Duration Charge(const std::string& project);

  // Work that was charged so much took `used`.
  void Settle(const std::string& project, absl::Duration charged, absl::Duration used);

 private:
  // Without those that have nothing to lose by being forgotten.
  void Prune();

  std::map<std::string, absl::Duration> clocks_;
  // That of the project that was served last; grows only.
  absl::Duration now_;
  // What work took lately.
  absl::Duration average_ = absl::Seconds(1);
  size_t prune_above_ = 1000;
};

}  // namespace mtmc::coordinator
