// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// Puts blobs into an artifact store in the background: as many at once as there are when
// the disk is free, so that they wait for it together. Thread-safe. A resource.
class BlobQueue {
 public:
  // Called once on the queue's thread, with what ArtifactStore::Put returns.
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
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  ArtifactStore& artifacts_;
  absl::Mutex mu_;
  std::vector<Entry> waiting_ ABSL_GUARDED_BY(mu_);
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  // Last, because it uses all of the above.
  std::jthread thread_;
};

}  // namespace mtmc::store
