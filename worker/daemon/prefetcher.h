// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::worker {

// Prepares the leases that are to follow the one in hand, each on a thread of its own,
// so that the device does not wait for a compiler.
//
//   prefetcher.Adopt("a", {b, c});  // "a" is in hand, b and c are to follow
//   prefetcher.Await("a", ...);     // before "a" is begun, if it was prepared
//   prefetcher.Adopt("b", {c});
//
// Preparing only fills caches: work that was not prepared is merely slower.
// Thread-safe.
class Prefetcher {
 public:
  // Prepares one lease; blocks, and returns soon after `is_cancelled`. Called on several
  // threads.
  using Prepare =
      std::function<void(const v1::Lease& lease, const std::function<bool()>& is_cancelled)>;

  struct Options {
    // Empty: prepares nothing.
    Prepare prepare;
    // Leases that are held: a program may take several times as long to build as the one
    // before it takes to judge, and more than there are builders only wait for each other.
    int most = 2;
  };

  explicit Prefetcher(Options options);
  ~Prefetcher();

  // How many leases it takes.
  int most() const { return options_.prepare ? options_.most : 0; }

  // What the coordinator wants: `current` is the lease in hand, empty for none,
  // and `next` those to follow, in their order. What is prepared and is none of them
  // is called off. One without its work is left to its time.
  void Adopt(const std::string& current, const std::vector<v1::Lease>& next);

  // Ids of the leases that are held.
  std::vector<std::string> held() const;

  // Waits until `id`, which is in hand, is prepared, if that has begun. Returns
  // early when `is_cancelled`.
  void Await(const std::string& id, const std::function<bool()>& is_cancelled);

 private:
  struct Held {
    v1::Lease lease;
    bool is_begun = false;
  };

  void PrepareUntilStopped(const std::stop_token& stop);
  Held* FindUnbegun() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsWanted(const std::string& id) const;

  const Options options_;
  mutable absl::Mutex mu_;
  absl::CondVar changed_;
  std::vector<Held> held_ ABSL_GUARDED_BY(mu_);
  // Id of the lease in hand; empty for none.
  std::string current_ ABSL_GUARDED_BY(mu_);
  // Ids of what the threads prepare.
  std::set<std::string> preparing_ ABSL_GUARDED_BY(mu_);
  std::vector<std::jthread> threads_;
};

}  // namespace mtmc::worker
