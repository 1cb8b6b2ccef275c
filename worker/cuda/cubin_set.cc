// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cubin_set.h"

#include <cstdint>
#include <cstring>

namespace mtmc::worker {
namespace {

// No ELF file begins like it. What follows is the size of each cubin and the cubin, in turns.
constexpr std::string_view kMagic = "mtmc cubins 1\n";

}  // namespace

std::string JoinCubins(const std::vector<std::string>& cubins) {
  if (cubins.size() == 1) return cubins.front();
  std::string joined(kMagic);
  for (const std::string& cubin : cubins) {
    const uint64_t size = cubin.size();
    joined.append(reinterpret_cast<const char*>(&size), sizeof(size));
    joined += cubin;
  }
  return joined;
}

std::optional<std::vector<std::string_view>> SplitCubins(std::string_view binary) {
  if (!binary.starts_with(kMagic)) return std::vector{binary};
  binary.remove_prefix(kMagic.size());
  std::vector<std::string_view> cubins;
  while (!binary.empty()) {
    uint64_t size = 0;
    if (binary.size() < sizeof(size)) return std::nullopt;
    std::memcpy(&size, binary.data(), sizeof(size));
    binary.remove_prefix(sizeof(size));
    if (size > binary.size()) return std::nullopt;
    cubins.push_back(binary.substr(0, size));
    binary.remove_prefix(size);
  }
  return cubins;
}

}  // namespace mtmc::worker
