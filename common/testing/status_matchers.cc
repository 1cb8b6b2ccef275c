// SPDX-License-Identifier: Apache-2.0
#include "common/testing/status_matchers.h"

namespace mtmc::testing {

bool StatusMatcher::match(const absl::Status& status) const {
  return status.code() == code_ &&
         (!substring_ || status.message().find(*substring_) != absl::string_view::npos);
}

std::string StatusMatcher::describe() const {
  std::string text = "has code " + absl::StatusCodeToString(code_);
  if (substring_) text += " and contains \"" + *substring_ + "\"";
  return text;
}

}  // namespace mtmc::testing
