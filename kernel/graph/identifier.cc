// SPDX-License-Identifier: Apache-2.0
#include "kernel/graph/identifier.h"

#include <algorithm>
#include <cstddef>

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

bool IsOperatorName(std::string_view text) {
  const size_t colons = text.find("::");
  if (colons == std::string_view::npos) return false;
  const std::string_view name = text.substr(colons + 2);
  const size_t point = name.find('.');
  return IsIdentifier(text.substr(0, colons)) && IsIdentifier(name.substr(0, point)) &&
         (point == std::string_view::npos || IsIdentifier(name.substr(point + 1)));
}

}  // namespace mtmc::kernel
