// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace mtmc::store {

// Hears of new events that any process wrote to a PostgresJobStore. A service:
// immovable; a thread of its own listens from Open() to the destructor, and connects
// again after a loss.
class PostgresListener {
 public:
  struct Sink {
    // `job` may have new events.
    std::function<void(const std::string& job)> on_events;
    // Any job may have: some were not heard of while the connection was lost.
    std::function<void()> on_gap;
  };

  // `address` is that of the store. Both functions are called by the thread that
  // listens. Errors of PostgresConnectionInfo.
  static absl::StatusOr<std::unique_ptr<PostgresListener>> Open(const std::string& address,
                                                                Sink sink);

  ~PostgresListener();
  PostgresListener(const PostgresListener&) = delete;
  PostgresListener& operator=(const PostgresListener&) = delete;

 private:
  PostgresListener(std::string info, Sink sink, base::UniqueFd stop);

  void Run();
  // Until the connection is lost or the end.
  void Listen();
  // False at the end.
  bool Wait(int socket, int timeout_ms) const;

  const std::string info_;
  const Sink sink_;
  // An eventfd: readable at the end.
  const base::UniqueFd stop_;
  std::jthread thread_;
};

}  // namespace mtmc::store
