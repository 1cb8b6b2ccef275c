// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/coordinator/succession.h"

namespace mtmc::coordinator {

class Coordinator;
class Seat;

// Takes part in the succession of a shared store for as long as it lives, and keeps the
// seat of this process true: it begins a Coordinator when the jobs become its own, and
// ends it when another one has taken over.
//
//   thread "mtmc-beat":  a look each second      -- epoch, address -->
//   thread "mtmc-reign": begins and ends a Coordinator, which takes its time
//
// A service: immovable; its threads run from construction to End().
class Tenure {
 public:
  struct Options {
    Succession::Options succession;
    // Between two looks: a quarter of the patience or less.
    absl::Duration beat = absl::Seconds(1);
  };

  // Begins to own the jobs in an epoch. An error is tried again while it is the owner.
  using Begin = std::function<absl::StatusOr<std::shared_ptr<Coordinator>>(int64_t epoch)>;

  // `store` and `seat` outlive it.
  Tenure(const Options& options, store::OwnerStore& store, Seat& seat, Begin begin);

  // Ends.
  ~Tenure();
  Tenure(const Tenure&) = delete;
  Tenure& operator=(const Tenure&) = delete;

  // Stops what is owned, and lets another one take over at once.
  void End();

 private:
  // What the last look said.
  struct Wish {
    // 0: the jobs are not ours.
    int64_t epoch = 0;
    std::string address;

    bool operator==(const Wish&) const = default;
  };

  void Beat(const std::stop_token& stop);
  void Reign(const std::stop_token& stop);
  void Fulfil(const Wish& wish);
  void Abdicate();

  const Options options_;
  Seat& seat_;
  const Begin begin_;
  // On the thread that beats, and after it.
  Succession succession_;

  // Of the standard library, whose waits a clock that is set back does not make longer: an
  // owner that rests for an hour is missed by all.
  std::mutex mu_;
  std::condition_variable changed_;
  // Under `mu_`.
  Wish wish_;
  // On the thread that reigns: what is fulfilled.
  Wish present_;

  std::jthread reign_;
  std::jthread beat_;
};

}  // namespace mtmc::coordinator
