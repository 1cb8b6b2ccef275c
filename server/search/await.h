// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/search/backends.h"
#include "server/search/event_loop.h"

namespace mtmc::search {

// Why a coroutine is to end early, or to begin again. Set on the loop; whatever the
// coroutine waits for then returns CANCELLED at once.
class Interruption {
 public:
  bool is_set() const { return is_set_; }

  void Set() {
    is_set_ = true;
    Wake();
  }

  // The coroutine has heard of it and goes on.
  void Clear() { is_set_ = false; }

  // Lets a coroutine that is in WaitFor() look at once whether to wait on.
  void Wake() {
    if (wake_) wake_();
  }

  // What Set calls while a coroutine waits.
  void SetWaker(std::function<void()> wake) { wake_ = std::move(wake); }

 private:
  bool is_set_ = false;
  std::function<void()> wake_;
};

// Calls `start` with a Done and waits, without a thread, until it was called.
// A result that comes after an interruption is dropped, and what would be begun after one is
// not. Only for sources that
// run on `loop`; the header is private to the coroutines of this folder.
//
// A `start` written within the co_await captures by reference: with g++ 12.2 what it captures by
// value, and that becomes a std::function, is destroyed once too often.
template <class T>
boost::asio::awaitable<absl::StatusOr<T>> Await(EventLoop& loop, Interruption& interruption,
                                                std::function<void(Done<T>)> start) {
  namespace asio = boost::asio;

  struct Pending {
    explicit Pending(asio::io_context& context)
        : timer(context, asio::steady_timer::time_point::max()) {}

    asio::steady_timer timer;
    std::optional<absl::StatusOr<T>> result;
  };

  if (interruption.is_set()) co_return absl::CancelledError("interrupted");
  auto pending = std::make_shared<Pending>(loop.context());
  // The timer never expires: cancelling it is the wake-up.
  interruption.SetWaker([pending] { pending->timer.cancel(); });
  // The timer belongs to the loop, and whoever calls Done may do so, and forget it, on a thread
  // that outlives that.
  start([there = std::weak_ptr<Pending>(pending), post = loop.poster()](absl::StatusOr<T> result) {
    post([there, result = std::move(result)]() mutable {
      const std::shared_ptr<Pending> waiting = there.lock();
      if (!waiting || waiting->result) return;
      waiting->result = std::move(result);
      waiting->timer.cancel();
    });
  });
  while (!pending->result && !interruption.is_set()) {
    co_await pending->timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  interruption.SetWaker(nullptr);
  if (pending->result) co_return *std::move(pending->result);
  co_return absl::CancelledError("interrupted");
}

// Waits for `duration` of real time or until the interruption.
inline boost::asio::awaitable<void> WaitFor(EventLoop& loop, Interruption& interruption,
                                            absl::Duration duration) {
  namespace asio = boost::asio;
  if (interruption.is_set()) co_return;
  auto timer =
      std::make_shared<asio::steady_timer>(loop.context(), absl::ToChronoNanoseconds(duration));
  interruption.SetWaker([timer] { timer->cancel(); });
  co_await timer->async_wait(asio::as_tuple(asio::use_awaitable));
  interruption.SetWaker(nullptr);
}

}  // namespace mtmc::search
