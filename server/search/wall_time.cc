// SPDX-License-Identifier: Apache-2.0
#include "server/search/wall_time.h"

#include <algorithm>

#include "common/base/clock.h"
#include "google/protobuf/util/time_util.h"

namespace mtmc::search {

namespace {

// Of any length; the longest are more nanoseconds than 64 bits hold.
absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

}  // namespace

void WallTime::Load(const v1::Job& job) {
  past_ = FromProto(job.budget_use().wall_time());
  since_.reset();
  if (job.has_start_time() && job.state() != v1::Job::STATE_PAUSED) Run();
}

void WallTime::Run() {
  if (!since_) since_ = clock_.Uptime();
}

void WallTime::Stop() {
  past_ = Elapsed();
  since_.reset();
}

absl::Duration WallTime::Elapsed() const {
  return since_ ? past_ + (clock_.Uptime() - *since_) : past_;
}

absl::Duration WallTime::Left(const v1::Budget& budget) const {
  return std::max(FromProto(budget.max_wall_time()) - Elapsed(), absl::ZeroDuration());
}

google::protobuf::Duration WallTime::ToProto() const {
  return google::protobuf::util::TimeUtil::NanosecondsToDuration(
      absl::ToInt64Nanoseconds(Elapsed()));
}

}  // namespace mtmc::search
