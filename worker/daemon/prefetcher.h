// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::worker {

// Prepares the lease that is to follow the one in hand, on a thread of its own,
// so that the device does not wait for a compiler.
//
//   prefetcher.Adopt("a", &b);      // "a" is in hand, b is to follow
//   prefetcher.Await("a", ...);     // before "a" is begun, if it was prepared
//   prefetcher.Adopt("b", nullptr);
//
// Preparing only fills caches: work that was not prepared is merely slower.
// Thread-safe.
class Prefetcher {
 public:
  // Prepares one lease; blocks, and returns soon after `is_cancelled`.
  using Prepare =
      std::function<void(const v1::Lease& lease, const std::function<bool()>& is_cancelled)>;

  // An empty `prepare` prepares nothing.
  explicit Prefetcher(Prepare prepare);
  ~Prefetcher();

  bool can_prepare() const { return prepare_ != nullptr; }

  // What the coordinator wants: `current` is the lease in hand, empty for none,
  // and `next` the one to follow, null for none. What is prepared and is neither
  // is called off. `next` without its work is left to its time.
  void Adopt(const std::string& current, const v1::Lease* next);

  // Id of the lease that is held; empty if there is none.
  std::string held() const;

  // Waits until `id`, which is in hand, is prepared, if that has begun. Returns
  // early when `is_cancelled`.
  void Await(const std::string& id, const std::function<bool()>& is_cancelled);

 private:
  void PrepareUntilStopped(const std::stop_token& stop);
  bool IsWanted(const std::string& id) const;

  const Prepare prepare_;
  mutable absl::Mutex mu_;
  absl::CondVar changed_;
  // The lease to prepare, and whether that is done.
  std::optional<v1::Lease> held_ ABSL_GUARDED_BY(mu_);
  bool is_prepared_ ABSL_GUARDED_BY(mu_) = false;
  // Ids of the lease in hand, and of what the thread prepares; empty for none.
  std::string current_ ABSL_GUARDED_BY(mu_);
  std::string preparing_ ABSL_GUARDED_BY(mu_);
  std::jthread thread_;
};

}  // namespace mtmc::worker
