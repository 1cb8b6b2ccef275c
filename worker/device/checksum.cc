// SPDX-License-Identifier: Apache-2.0
#include "worker/device/checksum.h"

#include <array>
#include <cstring>

namespace mtmc::worker {
namespace {

// Odd and without structure, so that multiplication spreads every bit upwards.
constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;

// Invertible in `word` for a fixed `state`: one changed word always shows. The
// shift brings a changed high bit, such as a sign, down to where the next
// multiplication spreads it.
uint64_t Mix(uint64_t state, uint64_t word) {
  const uint64_t product = (state ^ word) * kMultiplier;
  return product ^ (product >> 32);
}

}  // namespace

uint64_t HostChecksum(std::span<const std::byte> bytes) {
  // Four chains, because one multiplication waits for the one before it.
  std::array<uint64_t, 4> chains{1, 2, 3, 4};
  size_t i = 0;
  for (; i + sizeof chains <= bytes.size(); i += sizeof chains) {
    std::array<uint64_t, 4> words;
    std::memcpy(words.data(), bytes.data() + i, sizeof words);
    for (size_t lane = 0; lane < chains.size(); ++lane) {
      chains[lane] = Mix(chains[lane], words[lane]);
    }
  }
  uint64_t result = bytes.size();
  for (uint64_t chain : chains) result = Mix(result, chain);
  for (; i < bytes.size(); ++i) result = Mix(result, static_cast<uint64_t>(bytes[i]) + 1);
  return result;
}

}  // namespace mtmc::worker
