// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "mtmc/v1/job.pb.h"

namespace mtmc::base {
class Clock;
}

namespace mtmc::search {

// How long a search has run: what the job's record says, and since then the time by a clock
// that nobody sets. Pauses are left out, and so are times in which no coordinator has the job:
// they begin by one wall clock and end by another, which may be an hour ahead. A value.
class WallTime {
 public:
  // `clock` outlives it.
  explicit WallTime(const base::Clock& clock) : clock_(clock) {}

  // Goes on from what `job` has used, if its search has started and is not paused.
  void Load(const v1::Job& job);

  // Nothing if it runs.
  void Run();

  // Nothing if it stands.
  void Stop();

  absl::Duration Elapsed() const;

  // Of the longest that `budget` allows; 0 once it is over.
  absl::Duration Left(const v1::Budget& budget) const;

  google::protobuf::Duration ToProto() const;

 private:
  const base::Clock& clock_;
  absl::Duration past_ = absl::ZeroDuration();
  // The clock's uptime when it began to run.
  std::optional<absl::Duration> since_;
};

}  // namespace mtmc::search
