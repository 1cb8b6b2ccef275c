// SPDX-License-Identifier: Apache-2.0
#include "worker/device/outbox.h"

#include <algorithm>
#include <utility>

namespace mtmc::worker {
namespace {

// Any element is aligned so, and what reads many of them at once.
constexpr int64_t kAlignment = 256;

// What a buffer takes beside others; one without elements has a place, too.
int64_t Stride(const Buffer& buffer) {
  return (std::max(buffer.bytes(), int64_t{1}) + kAlignment - 1) / kAlignment * kAlignment;
}

bool IsSmall(const Buffer& buffer) { return buffer.bytes() <= Outbox::kSmallBytes; }

}  // namespace

Outcome<std::vector<std::optional<PeerMemory>>> Outbox::Share(
    std::span<const Buffer* const> buffers) {
  std::vector<std::optional<PeerMemory>> places(buffers.size());
  if (MaybeFailure failure = ShareCopies(buffers, places)) return *std::move(failure);
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!IsSmall(*buffers[i])) places[i] = buffers[i]->Share();
  }
  return places;
}

MaybeFailure Outbox::ShareCopies(std::span<const Buffer* const> buffers,
                                 std::vector<std::optional<PeerMemory>>& places) {
  int64_t total = 0;
  for (const Buffer* buffer : buffers) {
    if (IsSmall(*buffer)) total += Stride(*buffer);
  }
  if (total == 0) return std::nullopt;
  turn_ = (turn_ + 1) % copies_.size();
  std::unique_ptr<Buffer>& copies = copies_[turn_];
  if (!copies || copies->bytes() < total) {
    auto allocated = device_.Allocate(total);
    if (!allocated.ok()) return allocated.failure();
    copies = *std::move(allocated);
  }
  const std::optional<PeerMemory> whole = copies->Share();
  if (!whole) return std::nullopt;
  int64_t offset = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!IsSmall(*buffers[i])) continue;
    auto part =
        device_.Wrap(static_cast<std::byte*>(copies->address()) + offset, buffers[i]->bytes());
    if (!part.ok()) return part.failure();
    if (MaybeFailure failure = (*part)->CopyFrom(*buffers[i])) return failure;
    places[i] = PeerMemory{.handle = whole->handle, .offset_bytes = whole->offset_bytes + offset};
    offset += Stride(*buffers[i]);
  }
  // Another process reads them, which no stream of ours orders.
  return device_.Synchronize();
}

}  // namespace mtmc::worker
