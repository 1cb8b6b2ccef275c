// SPDX-License-Identifier: Apache-2.0
#include "worker/device/random_fill.h"

#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <set>
#include <vector>

namespace mtmc::worker {
namespace {

constexpr int64_t kTotal = 1024;
constexpr int64_t kOffset = 256;

// An allocation, and a tensor of some bytes in it.
struct Memory {
  explicit Memory(int64_t tensor_bytes)
      : fill(DescribeAllocation(reinterpret_cast<uintptr_t>(bytes.data()), kTotal, kOffset,
                                tensor_bytes)) {}

  // How many words were not as `former` has them.
  unsigned Fill(uint64_t stream, uint64_t former, bool with_tensor) {
    fill.stream = stream;
    fill.former = former;
    fill.fills_around = 1;
    fill.fills_tensor = with_tensor ? 1 : 0;
    return Visit();
  }

  unsigned CountWrong(uint64_t former) {
    fill.former = former;
    fill.fills_around = fill.fills_tensor = 0;
    return Visit();
  }

  unsigned Visit() {
    unsigned wrong = 0;
    for (uint64_t i = 0; i < CountVisited(fill); ++i) {
      wrong += FillChunk(fill, VisitedChunk(fill, i));
    }
    return wrong;
  }

  alignas(16) std::array<std::byte, kTotal> bytes{};
  RandomFill fill;
};

std::byte ExpectedByte(uint64_t stream, size_t at) {
  return static_cast<std::byte>(RandomWord(stream, at / 8) >> (8 * (at % 8)));
}

TEST_CASE("Tensor and surroundings are one row of words without a seam", "[device]") {
  const int64_t size = GENERATE(0, 1, 7, 8, 15, 16, 17, 100, 768);
  CAPTURE(size);
  Memory memory(size);

  CHECK(memory.Fill(5, 0, /*with_tensor=*/true) == 0);

  bool is_as_expected = true;
  for (size_t i = 0; i < kTotal; ++i) is_as_expected &= memory.bytes[i] == ExpectedByte(5, i);
  CHECK(is_as_expected);
}

TEST_CASE("Filling the surroundings leaves the tensor alone", "[device]") {
  const int64_t size = GENERATE(0, 1, 7, 8, 15, 16, 17, 100, 768);
  CAPTURE(size);
  Memory memory(size);
  memory.bytes.fill(std::byte{0x42});

  CHECK(memory.Fill(5, 0, /*with_tensor=*/false) == 0);

  bool is_as_expected = true;
  for (size_t i = 0; i < kTotal; ++i) {
    const bool is_inside = i >= kOffset && i < static_cast<size_t>(kOffset + size);
    is_as_expected &= memory.bytes[i] == (is_inside ? std::byte{0x42} : ExpectedByte(5, i));
  }
  CHECK(is_as_expected);
}

TEST_CASE("One changed byte around a tensor is found, when it is filled anew, too", "[device]") {
  const int64_t size = GENERATE(1, 15, 16, 17, 100);
  Memory memory(size);
  memory.Fill(5, 0, /*with_tensor=*/true);
  REQUIRE(memory.CountWrong(5) == 0);
  const auto at =
      static_cast<size_t>(GENERATE_COPY(int64_t{0}, kOffset - 1, kOffset + size, kTotal - 1));
  CAPTURE(size, at);

  memory.bytes[at] ^= std::byte{1};

  CHECK(memory.CountWrong(5) == 1);
  CHECK(memory.Fill(7, 5, GENERATE(true, false)) == 1);
  CHECK(memory.CountWrong(7) == 0);
}

TEST_CASE("A changed tensor is no change around it", "[device]") {
  const int64_t size = GENERATE(1, 15, 16, 17, 100);
  Memory memory(size);
  memory.Fill(5, 0, /*with_tensor=*/true);

  for (int64_t i = 0; i < size; ++i) memory.bytes[static_cast<size_t>(kOffset + i)] ^= std::byte{9};

  CHECK(memory.CountWrong(5) == 0);
}

TEST_CASE("A view is filled, and its neighbours are not", "[device]") {
  alignas(16) std::array<std::byte, 256> bytes{};
  const int64_t offset = GENERATE(16, 20, 31);
  const int64_t size = GENERATE(0, 1, 5, 64, 71);
  CAPTURE(offset, size);
  RandomFill fill = DescribeView(reinterpret_cast<uintptr_t>(bytes.data() + offset), size);
  fill.stream = 5;
  fill.fills_tensor = 1;

  for (uint64_t i = 0; i < CountVisited(fill); ++i) FillChunk(fill, VisitedChunk(fill, i));

  const auto begin = bytes.begin() + offset;
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  CHECK(std::all_of(bytes.begin(), begin, is_zero));
  CHECK(std::all_of(begin + size, bytes.end(), is_zero));
  CHECK(std::count_if(begin, begin + size, is_zero) <= 1 + size / 32);
}

TEST_CASE("Two streams have no more equal bytes than chance gives", "[device]") {
  constexpr uint64_t kWords = 1 << 16;
  int64_t equal = 0;
  int64_t set_bits = 0;
  for (uint64_t i = 0; i < kWords; ++i) {
    const uint64_t one = RandomWord(StreamOf(1, 0), i);
    const uint64_t difference = one ^ RandomWord(StreamOf(1, 1), i);
    for (int byte = 0; byte < 8; ++byte) equal += ((difference >> (8 * byte)) & 0xFF) == 0;
    set_bits += std::popcount(one);
  }

  // One byte in 256, give or take six standard deviations.
  const double bytes = 8.0 * kWords;
  CHECK(std::abs(static_cast<double>(equal) - bytes / 256) < 6 * std::sqrt(bytes / 256));
  CHECK(std::abs(static_cast<double>(set_bits) - 32.0 * kWords) < 6 * std::sqrt(16.0 * kWords));
}

TEST_CASE("The words are floats of every kind", "[device]") {
  bool has_nan = false;
  bool has_large = false;
  bool has_small = false;
  for (uint64_t i = 0; i < 10'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(RandomWord(3, i)));
    has_nan |= std::isnan(value);
    has_large |= std::abs(value) > 1e30F;
    has_small |= std::abs(value) < 1e-30F;
  }

  CHECK(has_nan);
  CHECK(has_large);
  CHECK(has_small);
}

TEST_CASE("Seeds and streams do not repeat", "[device]") {
  std::set<uint64_t> drawn;
  std::set<uint64_t> streams;
  for (uint64_t i = 0; i < 1000; ++i) {
    drawn.insert(DrawSeed());
    for (const uint64_t seed : {0, 1, 2}) streams.insert(StreamOf(seed, i));
  }

  CHECK(drawn.size() == 1000);
  CHECK(streams.size() == 3000);
  CHECK_FALSE(drawn.contains(0));
}

}  // namespace
}  // namespace mtmc::worker
