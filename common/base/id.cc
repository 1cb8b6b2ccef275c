// SPDX-License-Identifier: Apache-2.0
#include "common/base/id.h"

#include <algorithm>
#include <cstdint>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/string_view.h"

namespace mtmc::base {
namespace {

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }

bool IsLowerOrDigit(char c) { return IsLower(c) || (c >= '0' && c <= '9'); }

}  // namespace

std::string MakeUuid4() {
  absl::BitGen random;
  const auto high = absl::Uniform<std::uint64_t>(random);
  const auto low = absl::Uniform<std::uint64_t>(random);
  // RFC 9562: version 4 in the top nibble of the third group, variant 10 in the
  // top bits of the fourth.
  return absl::StrFormat("%08x-%04x-4%03x-%04x-%012x", high >> 32, (high >> 16) & 0xffff,
                         high & 0xfff, 0x8000 | ((low >> 48) & 0x3fff), low & 0xffffffffffff);
}

std::string MakeResourceId(std::string_view prefix) {
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr std::size_t kRandomLength = 12;
  absl::BitGen random;
  std::string id = absl::StrCat(ToAbsl(prefix), "-");
  for (std::size_t i = 0; i < kRandomLength; ++i) {
    id.push_back(kAlphabet[absl::Uniform<std::size_t>(random, 0, kAlphabet.size())]);
  }
  MTMC_CHECK(IsResourceId(id));
  return id;
}

bool IsResourceId(std::string_view id) {
  return !id.empty() && id.size() <= 63 && IsLower(id.front()) && id.back() != '-' &&
         std::all_of(id.begin(), id.end(), [](char c) { return c == '-' || IsLowerOrDigit(c); });
}

}  // namespace mtmc::base
