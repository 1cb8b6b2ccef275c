// SPDX-License-Identifier: Apache-2.0
#include "server/search/event_loop.h"

#include <pthread.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace mtmc::search {

namespace asio = boost::asio;

struct EventLoop::Core {
  // Runs what is to be run first, for a turn that another task has got, too.
  void RunFirst() ABSL_LOCKS_EXCLUDED(mu) {
    if (!has_first) return;
    std::deque<std::function<void()>> tasks;
    {
      absl::MutexLock lock(&mu);
      tasks.swap(first);
      has_first = false;
    }
    for (const std::function<void()>& task : tasks) {
      if (!is_stopped) task();
    }
  }

  std::atomic<bool> is_stopped = false;
  absl::Mutex mu;
  std::deque<std::function<void()>> first ABSL_GUARDED_BY(mu);
  // Whether there may be any; so that the many other turns take no lock.
  std::atomic<bool> has_first = false;
  asio::io_context context{/*concurrency_hint=*/1};
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(context);
  std::jthread thread;
};

EventLoop::EventLoop() : core_(std::make_shared<Core>()) {}

EventLoop::~EventLoop() { Stop(); }

void EventLoop::Start() {
  core_->thread = std::jthread([core = core_.get()] {
    pthread_setname_np(pthread_self(), "mtmc-loop");
    core->context.run();
  });
}

void EventLoop::Stop() {
  core_->is_stopped = true;
  core_->context.stop();
  if (core_->thread.joinable()) core_->thread.join();
}

void EventLoop::Post(std::function<void()> task) {
  if (core_->is_stopped) return;
  asio::post(core_->context, [core = core_.get(), task = std::move(task)] {
    core->RunFirst();
    task();
  });
}

void EventLoop::PostFirst(std::function<void()> task) {
  if (core_->is_stopped) return;
  {
    absl::MutexLock lock(&core_->mu);
    core_->first.push_back(std::move(task));
    core_->has_first = true;
  }
  // A loop with nothing else to do has its turn by this.
  asio::post(core_->context, [core = core_.get()] { core->RunFirst(); });
}

void EventLoop::PostAfter(absl::Duration delay, std::function<void()> task) {
  Post([this, delay, task = std::move(task)] {
    auto timer =
        std::make_shared<asio::steady_timer>(core_->context, absl::ToChronoNanoseconds(delay));
    timer->async_wait([timer, task](const boost::system::error_code& error) {
      if (!error) task();
    });
  });
}

std::function<void(std::function<void()>)> EventLoop::poster() const {
  // Weak: a queued task may hold a poster, and the context must not own itself.
  return [weak = std::weak_ptr<Core>(core_)](std::function<void()> task) {
    const auto core = weak.lock();
    if (core && !core->is_stopped) asio::post(core->context, std::move(task));
  };
}

asio::io_context& EventLoop::context() { return core_->context; }

}  // namespace mtmc::search
