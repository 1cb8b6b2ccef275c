// SPDX-License-Identifier: Apache-2.0
#include "worker/device/random_fill.h"

#include <random>

namespace mtmc::worker {
namespace {

constexpr int64_t kChunkBytes = sizeof(RandomChunk);

RandomChunk* ToChunks(uintptr_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a device's addresses are integers.
  return reinterpret_cast<RandomChunk*>(address);
}

std::mt19937_64 MakeEngine() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device(), device(), device()};
  return std::mt19937_64(seed);
}

}  // namespace

RandomFill DescribeAllocation(uintptr_t allocation, int64_t total_bytes, int64_t tensor_offset,
                              int64_t tensor_bytes) {
  RandomFill fill{};
  fill.chunks = ToChunks(allocation);
  fill.num_chunks = static_cast<uint64_t>(total_bytes / kChunkBytes);
  fill.begin = static_cast<uint64_t>(tensor_offset);
  fill.end = static_cast<uint64_t>(tensor_offset + tensor_bytes);
  fill.is_alone = 1;
  return fill;
}

RandomFill DescribeView(uintptr_t tensor, int64_t tensor_bytes) {
  // Its first chunk may begin before it.
  const uintptr_t before = tensor % kChunkBytes;
  RandomFill fill{};
  fill.chunks = ToChunks(tensor - before);
  fill.begin = before;
  fill.end = before + static_cast<uint64_t>(tensor_bytes);
  fill.num_chunks = (fill.end + kChunkBytes - 1) / kChunkBytes;
  return fill;
}

uint64_t StreamOf(uint64_t seed, uint64_t position) {
  return RandomWord(RandomWord(seed, ~uint64_t{0}), position) | 1;
}

uint64_t DrawSeed() {
  static thread_local std::mt19937_64 engine = MakeEngine();
  return engine() | 1;
}

}  // namespace mtmc::worker
