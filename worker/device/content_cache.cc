// SPDX-License-Identifier: Apache-2.0
#include "worker/device/content_cache.h"

#include <utility>
#include <vector>

namespace mtmc::worker {

using KeptPointer = std::shared_ptr<const KeptTensor>;

ContentCache::ContentCache(Device& device, int64_t limit_bytes)
    : device_(device), limit_bytes_(limit_bytes) {}

KeptPointer ContentCache::Find(uint64_t content, int64_t bytes) {
  auto copy = copies_.find(content);
  if (copy == copies_.end() || copy->second.tensor->buffer->bytes() != bytes) return nullptr;
  copy->second.num_unasked = 0;
  return copy->second.tensor;
}

Outcome<KeptPointer> ContentCache::Keep(uint64_t content, const kernel::Tensor& tensor,
                                        const InputSource& source) {
  const int64_t bytes = tensor.type.bytes();
  if (content == 0 || copies_.contains(content) || bytes > limit_bytes_ / kLeastCopies ||
      used_bytes_ + bytes > limit_bytes_) {
    return KeptPointer();
  }
  auto copied = CopyToKeep(device_, tensor, source);
  if (!copied.ok()) {
    if (copied.failure().kind == Failure::Kind::kOutOfMemory) return KeptPointer();
    return copied.failure();
  }
  BufferScan scan = ChecksumScan((*copied)->buffer.get());
  if (MaybeFailure failure = device_.Scan({&scan, 1})) return *std::move(failure);
  (*copied)->checksum = scan.checksum;
  used_bytes_ += bytes;
  return (copies_[content] = {.tensor = *std::move(copied)}).tensor;
}

void ContentCache::Sweep() {
  DropIf([](Copy& copy) { return copy.num_unasked++ == kMostUnasked; });
}

Outcome<bool> ContentCache::DropDamaged() {
  std::vector<BufferScan> scans;
  for (const auto& [content, copy] : copies_) scans.push_back(AboutKept(*copy.tensor));
  if (MaybeFailure failure = device_.Scan(scans)) return *std::move(failure);
  return DropIf(
      [scan = scans.begin()](Copy& copy) mutable { return !IsIntact(*copy.tensor, *scan++); });
}

bool ContentCache::DropIf(std::function<bool(Copy&)> is_dropped) {
  const size_t before = copies_.size();
  for (auto entry = copies_.begin(); entry != copies_.end();) {
    const auto copy = entry++;
    if (!is_dropped(copy->second)) continue;
    used_bytes_ -= copy->second.tensor->buffer->bytes();
    copies_.erase(copy);
  }
  return copies_.size() < before;
}

void ContentCache::Clear() {
  copies_.clear();
  used_bytes_ = 0;
}

}  // namespace mtmc::worker
