// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/runner_sampler.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "worker/verify/verifier.h"

namespace mtmc::worker {

absl::StatusOr<CheckedBlock> RunnerSampler::Take(const BlockRequest& block,
                                                 const std::vector<int64_t>& kept) {
  pipe::v1::RunnerRequest request;
  pipe::v1::RunnerRequest::Time& time = *request.mutable_time();
  time.set_samples(block.samples);
  time.set_is_cold(options_.is_cold);
  time.set_warmups(block.warmups);
  time.set_with_yardstick(options_.is_cold && block.with_yardstick);
  time.set_checked_ratio(options_.checked_ratio);
  time.mutable_kept()->Assign(kept.begin(), kept.end());
  const auto reply = runner_.Call(request, options_.deadline - absl::Now());
  failure_ = FailureOf(reply, v1::STAGE_MEASURE);
  if (failure_) return absl::AbortedError(failure_->message());
  const pipe::v1::RunnerResponse::Timed& timed = reply.response.timed();
  num_timed_ += block.samples;
  return CheckedBlock{
      .samples = {.seconds = {timed.samples_seconds().begin(), timed.samples_seconds().end()},
                  .yardstick_seconds = {timed.yardstick_seconds().begin(),
                                        timed.yardstick_seconds().end()},
                  .launches = std::max(1, timed.launches()),
                  .process = reply.process,
                  .throttled = timed.throttled_samples(),
                  .shifted = timed.shifted_samples(),
                  .late = timed.late_samples(),
                  .clock_hertz = timed.clock_hertz()},
      .checked = {timed.checked().begin(), timed.checked().end()},
      .max_unseen_seconds = timed.max_unseen_seconds()};
}

}  // namespace mtmc::worker
