// SPDX-License-Identifier: Apache-2.0
#include "server/store/blob_queue.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "server/store/artifact_store.h"

namespace mtmc::store {
namespace {

// A disk is busy with one batch; a network carries some blobs at once.
constexpr size_t kNumThreads = 4;

// Each blob of a batch has a file open.
constexpr size_t kMaxBatch = 64;

}  // namespace

BlobQueue::BlobQueue(ArtifactStore& artifacts) : artifacts_(artifacts) {
  for (size_t i = 0; i < kNumThreads; ++i) threads_.emplace_back([this] { Run(); });
}

BlobQueue::~BlobQueue() {
  {
    absl::MutexLock lock(&mu_);
    is_ending_ = true;
  }
  for (std::jthread& thread : threads_) thread.join();
}

void BlobQueue::Put(std::string blob, Done done) {
  absl::MutexLock lock(&mu_);
  waiting_.push_back({.blob = std::move(blob), .done = std::move(done)});
}

// A share of what waits, so that no thread has all of it.
std::vector<BlobQueue::Entry> BlobQueue::TakeBatch() {
  const size_t share = (waiting_.size() + kNumThreads - 1) / kNumThreads;
  std::vector<Entry> batch;
  for (size_t i = 0; i < std::min(share, kMaxBatch); ++i) {
    batch.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return batch;
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
      batch = TakeBatch();
    }
    std::vector<std::string> blobs;
    blobs.reserve(batch.size());
    for (Entry& entry : batch) blobs.push_back(std::move(entry.blob));
    const std::vector<absl::StatusOr<v1::Digest>> results = artifacts_.PutAll(blobs);
    for (size_t i = 0; i < batch.size(); ++i) batch[i].done(results[i]);
  }
}

}  // namespace mtmc::store
