// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/tenure.h"

#include <pthread.h>

#include <utility>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/rpc/error.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/seat.h"

namespace mtmc::coordinator {
namespace {

using base::Log;
using base::LogLevel;

// Between two tries to begin: the store was not there a moment ago.
constexpr absl::Duration kRetry = absl::Milliseconds(200);

}  // namespace

Tenure::Tenure(const Options& options, store::OwnerStore& store, Seat& seat, Begin begin)
    : options_(options),
      seat_(seat),
      begin_(std::move(begin)),
      succession_(options.succession, store),
      reign_([this](const std::stop_token& stop) { Reign(stop); }),
      beat_([this](const std::stop_token& stop) { Beat(stop); }) {}

Tenure::~Tenure() { End(); }

void Tenure::End() {
  if (!beat_.joinable()) return;
  beat_.request_stop();
  reign_.request_stop();
  {
    // Whoever looked before the request waits by now, and hears it.
    const std::scoped_lock lock(mu_);
  }
  changed_.notify_all();
  beat_.join();
  reign_.join();
  // Nothing of this process writes any more.
  const absl::Status status = succession_.Resign();
  if (!status.ok()) {
    Log(LogLevel::kWarning, "another coordinator takes over only when this one is missed",
        {{"error", status}});
  }
}

void Tenure::Beat(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "mtmc-beat");
  bool is_down = false;
  while (!stop.stop_requested()) {
    const absl::StatusOr<Succession::View> view = succession_.Step(base::RealClock().Uptime());
    // Without the store nobody can write, and so nobody takes over: all stays as it is.
    if (!view.ok() && !is_down) {
      Log(LogLevel::kWarning, "the store cannot say who owns the jobs", {{"error", view.status()}});
    }
    is_down = !view.ok();
    std::unique_lock lock(mu_);
    if (absl::IsFailedPrecondition(view.status())) {
      // A newer release has the store: until this process is replaced, it passes calls on.
      wish_ = {.address = rpc::ErrorMetadata(view.status())["owner"]};
      changed_.notify_all();
    } else if (view.ok()) {
      wish_ = {.epoch = view->is_mine ? view->owner.epoch : 0,
               .address = view->is_mine ? "" : view->owner.address};
      changed_.notify_all();
    }
    changed_.wait_for(lock, absl::ToChronoNanoseconds(options_.beat),
                      [&stop] { return stop.stop_requested(); });
  }
}

void Tenure::Reign(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "mtmc-reign");
  while (!stop.stop_requested()) {
    Wish wish;
    {
      std::unique_lock lock(mu_);
      changed_.wait(lock, [&] { return stop.stop_requested() || wish_ != present_; });
      wish = wish_;
    }
    if (stop.stop_requested()) break;
    Fulfil(wish);
    if (wish == present_) continue;
    std::unique_lock lock(mu_);
    changed_.wait_for(lock, absl::ToChronoNanoseconds(kRetry));
  }
  Abdicate();
}

void Tenure::Fulfil(const Wish& wish) {
  if (present_.epoch != 0) {
    Log(LogLevel::kWarning, "another coordinator owns the jobs",
        {{"epoch", present_.epoch}, {"owner", wish.address}});
  }
  Abdicate();
  present_ = {};
  seat_.SetRemote(wish.address);
  if (wish.epoch != 0) {
    absl::StatusOr<std::shared_ptr<Coordinator>> coordinator = begin_(wish.epoch);
    if (!coordinator.ok()) {
      Log(LogLevel::kError, "cannot take up the jobs yet",
          {{"epoch", wish.epoch}, {"error", coordinator.status()}});
      return;
    }
    Log(LogLevel::kInfo, "owns the jobs", {{"epoch", wish.epoch}});
    seat_.SetLocal(*std::move(coordinator));
  }
  present_ = wish;
}

void Tenure::Abdicate() {
  const std::shared_ptr<Coordinator> coordinator = seat_.local();
  if (coordinator == nullptr) return;
  coordinator->ReleaseCalls();
  coordinator->Stop();
  seat_.SetRemote("");
}

}  // namespace mtmc::coordinator
