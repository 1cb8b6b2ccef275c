// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cubin_set.h"

#include <cstdint>
#include <cstring>

namespace mtmc::worker {
namespace {

// No ELF file begins like it. What follows is, for each part, the number of its kernels, name and
// symbol of each, and the cubin: every text with its size before it.
constexpr std::string_view kMagic = "mtmc cubins 2\n";

void AppendNumber(uint64_t number, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void AppendText(std::string_view text, std::string& bytes) {
  AppendNumber(text.size(), bytes);
  bytes += text;
}

// Takes what was appended from the beginning of `bytes`; false where it is not all there.
bool TakeNumber(std::string_view& bytes, uint64_t& number) {
  if (bytes.size() < sizeof(number)) return false;
  std::memcpy(&number, bytes.data(), sizeof(number));
  bytes.remove_prefix(sizeof(number));
  return true;
}

bool TakeText(std::string_view& bytes, std::string_view& text) {
  uint64_t size = 0;
  if (!TakeNumber(bytes, size) || size > bytes.size()) return false;
  text = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return true;
}

bool TakePart(std::string_view& bytes, CubinPart& part) {
  uint64_t count = 0;
  if (!TakeNumber(bytes, count)) return false;
  for (; count > 0; --count) {
    std::string_view name;
    std::string_view symbol;
    if (!TakeText(bytes, name) || !TakeText(bytes, symbol)) return false;
    part.symbols.emplace(name, symbol);
  }
  return TakeText(bytes, part.cubin);
}

}  // namespace

std::string JoinCubins(const std::vector<CubinPart>& parts) {
  std::string joined(kMagic);
  for (const CubinPart& part : parts) {
    AppendNumber(part.symbols.size(), joined);
    for (const auto& [name, symbol] : part.symbols) {
      AppendText(name, joined);
      AppendText(symbol, joined);
    }
    AppendText(part.cubin, joined);
  }
  return joined;
}

std::optional<std::vector<CubinPart>> SplitCubins(std::string_view binary) {
  if (!binary.starts_with(kMagic)) return std::vector{CubinPart{.cubin = binary, .symbols = {}}};
  binary.remove_prefix(kMagic.size());
  std::vector<CubinPart> parts;
  while (!binary.empty()) {
    if (!TakePart(binary, parts.emplace_back())) return std::nullopt;
  }
  return parts;
}

}  // namespace mtmc::worker
