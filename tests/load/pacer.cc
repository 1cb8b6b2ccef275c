// SPDX-License-Identifier: Apache-2.0
#include "tests/load/pacer.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <thread>
#include <utility>

namespace mtmc::load {

namespace asio = boost::asio;

struct Pacer::Core {
  asio::io_context context;
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(context);
  std::jthread thread;
};

Pacer::Pacer() : core_(std::make_unique<Core>()) {
  core_->thread = std::jthread([this] { core_->context.run(); });
}

Pacer::~Pacer() { Stop(); }

void Pacer::After(absl::Duration delay, std::function<void()> task) {
  // A timer belongs to the thread of its context.
  asio::post(core_->context, [this, delay, task = std::move(task)]() mutable {
    auto timer =
        std::make_shared<asio::steady_timer>(core_->context, absl::ToChronoNanoseconds(delay));
    timer->async_wait([timer, task = std::move(task)](const boost::system::error_code& error) {
      if (!error) task();
    });
  });
}

void Pacer::Stop() {
  core_->context.stop();
  if (core_->thread.joinable()) core_->thread.join();
}

}  // namespace mtmc::load
