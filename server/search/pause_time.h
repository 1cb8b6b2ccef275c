// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "mtmc/v1/job.pb.h"

namespace mtmc::search {

// How long a job was paused since its search first started: what its event log says and
// nothing else, so that every coordinator that reads the log says the same. A value.
class PauseTime {
 public:
  // Takes the next event of the job's log.
  void Apply(const v1::JobEvent& event);

  // All pauses up to `now`, one under way counted in.
  google::protobuf::Duration Until(const google::protobuf::Timestamp& now) const;

 private:
  google::protobuf::Duration past_;
  // Begin of the pause under way.
  std::optional<google::protobuf::Timestamp> since_;
};

}  // namespace mtmc::search
