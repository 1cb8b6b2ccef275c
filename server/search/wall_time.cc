// SPDX-License-Identifier: Apache-2.0
#include "server/search/wall_time.h"

#include "common/base/clock.h"
#include "google/protobuf/util/time_util.h"

namespace mtmc::search {

using google::protobuf::util::TimeUtil;

void WallTime::Load(const v1::Job& job) {
  past_ = absl::Nanoseconds(TimeUtil::DurationToNanoseconds(job.budget_use().wall_time()));
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

google::protobuf::Duration WallTime::ToProto() const {
  return TimeUtil::NanosecondsToDuration(absl::ToInt64Nanoseconds(Elapsed()));
}

}  // namespace mtmc::search
