// SPDX-License-Identifier: Apache-2.0
#include "kernel/graph/identifier.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace mtmc::kernel {
namespace {

unsigned char Byte(char c) { return static_cast<unsigned char>(c); }

}  // namespace

bool IsIdentifier(std::string_view text) {
  if (text.empty() || text.size() > kMaxIdentifierBytes) return false;
  if (absl::ascii_isdigit(Byte(text.front()))) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c == '_' || absl::ascii_isalnum(Byte(c)); });
}

}  // namespace mtmc::kernel
