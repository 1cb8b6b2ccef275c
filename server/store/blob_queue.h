// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "mtmc/v1/tensor.pb.h"

namespace mtmc::store {

class ArtifactStore;

// Puts blobs into an artifact store in the background. What comes while the disk is busy is
// put at once when it is free, and waits for it together. Several threads do so, for a store
// that is a network away takes one blob after the other. Thread-safe. A resource.
class BlobQueue {
 public:
  // Called once on a thread of the queue's, with what ArtifactStore::Put returns. In no order.
  using Done = std::function<void(absl::StatusOr<v1::Digest>)>;

  // The store is borrowed.
  explicit BlobQueue(ArtifactStore& artifacts);

  // Puts what is left.
  ~BlobQueue();

  BlobQueue(const BlobQueue&) = delete;
  BlobQueue& operator=(const BlobQueue&) = delete;

  // Never blocks.
  void Put(std::string blob, Done done) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Entry {
    std::string blob;
    Done done;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<Entry> TakeBatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  ArtifactStore& artifacts_;
  absl::Mutex mu_;
  std::deque<Entry> waiting_ ABSL_GUARDED_BY(mu_);
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  // Last, because they use all of the above.
  std::vector<std::jthread> threads_;
};

}  // namespace mtmc::store
