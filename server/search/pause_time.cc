// SPDX-License-Identifier: Apache-2.0
#include "server/search/pause_time.h"

#include "google/protobuf/util/time_util.h"

namespace mtmc::search {

void PauseTime::Apply(const v1::JobEvent& event) {
  if (!event.has_job()) return;
  const bool is_paused = event.job().state() == v1::Job::STATE_PAUSED;
  if (is_paused && !since_ && event.job().has_start_time()) since_ = event.time();
  if (is_paused || !since_) return;
  past_ = Until(event.time());
  since_.reset();
}

google::protobuf::Duration PauseTime::Until(const google::protobuf::Timestamp& now) const {
  return since_ ? past_ + (now - *since_) : past_;
}

}  // namespace mtmc::search
