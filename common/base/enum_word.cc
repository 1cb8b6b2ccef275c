// SPDX-License-Identifier: Apache-2.0
#include "common/base/enum_word.h"

#include "absl/strings/ascii.h"

namespace mtmc::base {

std::string EnumWord(std::string_view enumerator, std::string_view prefix) {
  if (enumerator.starts_with(prefix)) enumerator.remove_prefix(prefix.size());
  std::string word(enumerator);
  absl::AsciiStrToLower(&word);
  return word;
}

}  // namespace mtmc::base
