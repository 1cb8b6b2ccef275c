// SPDX-License-Identifier: Apache-2.0
#include "client/cli/line_diff.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace mtmc::client {
namespace {

constexpr size_t kContext = 3;

using Lines = std::vector<std::string>;

// Every line of both texts with its mark, without folding.
Lines FullDiff(const Lines& a, const Lines& b) {
  // common[i][j]: length of the longest common subsequence of a[i..] and b[j..].
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      common[i][j] =
          a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  Lines diff;
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      diff.push_back(absl::StrCat(" ", a[i]));
      ++i;
      ++j;
    } else if (j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1])) {
      diff.push_back(absl::StrCat("-", a[i++]));
    } else {
      diff.push_back(absl::StrCat("+", b[j++]));
    }
  }
  return diff;
}

}  // namespace

Lines LineDiff(std::string_view before, std::string_view after) {
  const auto split = [](std::string_view text) {
    return Lines(absl::StrSplit(absl::string_view(text.data(), text.size()), '\n'));
  };
  const Lines full = FullDiff(split(before), split(after));
  std::vector<bool> is_shown(full.size());
  for (size_t i = 0; i < full.size(); ++i) {
    if (full[i][0] == ' ') continue;
    const size_t first = i < kContext ? 0 : i - kContext;
    const size_t last = std::min(full.size() - 1, i + kContext);
    std::fill(is_shown.begin() + static_cast<std::ptrdiff_t>(first),
              is_shown.begin() + static_cast<std::ptrdiff_t>(last + 1), true);
  }
  Lines folded;
  for (size_t i = 0; i < full.size(); ++i) {
    if (is_shown[i]) {
      if (i > 0 && !is_shown[i - 1] && !folded.empty()) folded.push_back("@@");
      folded.push_back(full[i]);
    }
  }
  return folded;
}

}  // namespace mtmc::client
