// SPDX-License-Identifier: Apache-2.0
#include "worker/device/checksum.h"

#include <catch2/catch.hpp>
#include <set>
#include <vector>

namespace mtmc::worker {

TEST_CASE("HostChecksum shows every changed bit", "[device]") {
  std::vector<std::byte> bytes(75);
  std::set<uint64_t> sums = {HostChecksum(bytes)};

  for (std::byte& byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      byte ^= std::byte{1} << bit;
      sums.insert(HostChecksum(bytes));
      byte ^= std::byte{1} << bit;
    }
  }

  CHECK(sums.size() == 1 + 8 * bytes.size());
}

TEST_CASE("HostChecksum shows that words changed places", "[device]") {
  std::vector<std::byte> bytes(128);
  bytes[0] = std::byte{1};
  const uint64_t before = HostChecksum(bytes);
  std::swap(bytes[0], bytes[64]);

  CHECK(HostChecksum(bytes) != before);
}

TEST_CASE("HostChecksum depends on the length", "[device]") {
  CHECK(HostChecksum(std::vector<std::byte>(64)) != HostChecksum(std::vector<std::byte>(65)));
}

}  // namespace mtmc::worker
