// SPDX-License-Identifier: Apache-2.0
#include "server/store/blob_queue.h"

#include <pthread.h>

#include <utility>

#include "server/store/artifact_store.h"

namespace mtmc::store {

BlobQueue::BlobQueue(ArtifactStore& artifacts)
    : artifacts_(artifacts), thread_([this] { Run(); }) {}

BlobQueue::~BlobQueue() {
  {
    absl::MutexLock lock(&mu_);
    is_ending_ = true;
  }
  thread_.join();
}

void BlobQueue::Put(std::string blob, Done done) {
  absl::MutexLock lock(&mu_);
  waiting_.push_back({.blob = std::move(blob), .done = std::move(done)});
}

bool BlobQueue::HasWork() const { return !waiting_.empty() || is_ending_; }

void BlobQueue::Run() {
  pthread_setname_np(pthread_self(), "mtmc-blobs");
  while (true) {
    std::vector<Entry> batch;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &BlobQueue::HasWork));
      if (waiting_.empty()) return;
      batch.swap(waiting_);
    }
    std::vector<std::string> blobs;
    blobs.reserve(batch.size());
    for (Entry& entry : batch) blobs.push_back(std::move(entry.blob));
    const std::vector<absl::StatusOr<v1::Digest>> results = artifacts_.PutAll(blobs);
    for (size_t i = 0; i < batch.size(); ++i) batch[i].done(results[i]);
  }
}

}  // namespace mtmc::store
