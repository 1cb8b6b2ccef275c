// SPDX-License-Identifier: Apache-2.0
#include "worker/runner/timed_block.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "worker/device/clock_filter.h"

namespace mtmc::worker {
namespace {

// At least this share of a block's samples stays, however the clock moves.
constexpr int kMinKeptShare = 2;

// One execution of a block.
struct Execution {
  TimedSample sample;
  int64_t kept = 0;
  std::optional<uint64_t> digest;
};

class Block {
 public:
  Block(Device& device, PlanRunner& plan, InputStore& store,
        const pipe::v1::RunnerRequest::Time& request, std::mt19937_64& random)
      : device_(device), plan_(plan), store_(store), request_(request), random_(random) {
    for (const int64_t id : request.kept()) {
      if (store.Find(id)) (store.IsUnseen(id) ? unseen_ : seen_).push_back(id);
    }
  }

  MaybeFailure Run() {
    if (MaybeFailure failure = plan_.Shuffle()) return failure;
    const int total = request_.warmups() + request_.samples();
    const int num_unseen = std::min(static_cast<int>(unseen_.size()), request_.samples());
    for (int i = 0; i < total; ++i) {
      const bool is_unseen = i >= total - num_unseen;
      const bool is_warmup = i < request_.warmups();
      const int64_t id = is_warmup   ? 0
                         : is_unseen ? unseen_[static_cast<size_t>(total - 1 - i)]
                                     : DrawSeen();
      Execution execution{.kept = id};
      auto sample = plan_.Time(request_.is_cold(), store_.Find(id));
      if (!sample.ok()) return sample.failure();
      if (id != 0) store_.MarkSeen(id);
      executed_seconds_ += sample->seconds;
      if (is_warmup) continue;
      execution.sample = *sample;
      if (is_unseen || DrawShare() < request_.checked_ratio()) {
        auto digest = plan_.Digest();
        if (!digest.ok()) return digest.failure();
        execution.digest = *digest;
      }
      executions_.push_back(execution);
      if (!request_.with_yardstick()) continue;
      auto yardstick = device_.TimeYardstick();
      if (!yardstick.ok()) return yardstick.failure();
      if (*yardstick) yardstick_seconds_.push_back(**yardstick);
    }
    return plan_.CheckMemory();
  }

  pipe::v1::RunnerResponse::Timed ToProto() const {
    pipe::v1::RunnerResponse::Timed timed;
    timed.set_executed_seconds(executed_seconds_);
    const std::vector<bool> is_steady = FindSteady();
    for (size_t i = 0; i < executions_.size(); ++i) {
      const Execution& execution = executions_[i];
      const TimedSample& sample = execution.sample;
      const bool is_kept = sample.is_clean() && is_steady[i];
      if (execution.digest) {
        pipe::v1::RunnerResponse::CheckedExecution& checked = *timed.add_checked();
        checked.set_sample(is_kept ? timed.samples_seconds_size() : -1);
        checked.set_kept(execution.kept);
        checked.set_digest(*execution.digest);
      }
      timed.set_max_unseen_seconds(std::max(timed.max_unseen_seconds(), sample.unseen_seconds));
      if (is_kept) {
        timed.add_samples_seconds(sample.seconds);
      } else if (sample.is_throttled) {
        timed.set_throttled_samples(timed.throttled_samples() + 1);
      } else if (sample.is_late) {
        timed.set_late_samples(timed.late_samples() + 1);
      } else {
        timed.set_shifted_samples(timed.shifted_samples() + 1);
      }
    }
    timed.set_clock_hertz(UsualClock(Clocks()));
    timed.set_launches(plan_.CountLaunches());
    timed.mutable_yardstick_seconds()->Assign(yardstick_seconds_.begin(), yardstick_seconds_.end());
    return timed;
  }

 private:
  // 0 stays on the present inputs. Never the same set twice in a row where there
  // are others: whoever remembers only the last result has nothing to replay.
  int64_t DrawSeen() {
    std::vector<int64_t> others;
    std::copy_if(seen_.begin(), seen_.end(), std::back_inserter(others),
                 [this](int64_t id) { return id != store_.last_seen(); });
    if (others.empty()) return seen_.empty() ? 0 : seen_.front();
    return others[std::uniform_int_distribution<size_t>(0, others.size() - 1)(random_)];
  }

  double DrawShare() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  std::vector<double> Clocks() const {
    std::vector<double> clocks;
    for (const Execution& execution : executions_) clocks.push_back(execution.sample.clock_hertz);
    return clocks;
  }

  std::vector<bool> FindSteady() const {
    return FindSteadyClocks(Clocks(), static_cast<int>(executions_.size()) / kMinKeptShare);
  }

  Device& device_;
  PlanRunner& plan_;
  InputStore& store_;
  const pipe::v1::RunnerRequest::Time& request_;
  std::mt19937_64& random_;
  std::vector<int64_t> seen_;
  std::vector<int64_t> unseen_;
  std::vector<Execution> executions_;
  std::vector<double> yardstick_seconds_;
  double executed_seconds_ = 0;
};

}  // namespace

Outcome<pipe::v1::RunnerResponse::Timed> TimeBlock(Device& device, PlanRunner& plan,
                                                   InputStore& store,
                                                   const pipe::v1::RunnerRequest::Time& request,
                                                   std::mt19937_64& random) {
  Block block(device, plan, store, request, random);
  if (MaybeFailure failure = block.Run()) return *std::move(failure);
  return block.ToProto();
}

}  // namespace mtmc::worker
