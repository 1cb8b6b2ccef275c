// SPDX-License-Identifier: Apache-2.0
#include "policy/model/unicode.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "absl/status/status.h"

namespace mtmc::policy {
namespace {

struct Character {
  utf8proc_int32_t code_point = -1;
  size_t bytes = 0;
};

// The first character, or a code point of -1 when the bytes are not UTF-8.
Character Decode(std::string_view text) {
  Character character;
  const utf8proc_ssize_t bytes =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(text.size()), &character.code_point);
  if (bytes > 0) character.bytes = static_cast<size_t>(bytes);
  return character;
}

Character DecodeLast(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    --begin;
    if ((static_cast<unsigned char>(text[begin]) & 0xc0) != 0x80) break;
  }
  return Decode(text.substr(begin));
}

bool IsWhiteSpace(utf8proc_int32_t c) {
  return (c >= 0x9 && c <= 0xd) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool IsWord(utf8proc_int32_t c) {
  constexpr utf8proc_int32_t kNonJoiner = 0x200c;
  constexpr utf8proc_int32_t kJoiner = 0x200d;
  if (c < 0) return false;
  if (c == kNonJoiner || c == kJoiner) return true;
  const utf8proc_category_t category = utf8proc_category(c);
  const bool is_letter_mark_or_number =
      category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO;
  return (is_letter_mark_or_number && category != UTF8PROC_CATEGORY_NO) ||
         category == UTF8PROC_CATEGORY_PC;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const Character character = Decode(text);
    if (character.bytes == 0) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

absl::StatusOr<std::string> ToNfc(std::string_view text) {
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &composed,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(composed, &std::free);
  if (bytes < 0) return absl::InvalidArgumentError("text is not valid UTF-8");
  return std::string(reinterpret_cast<const char*>(composed), static_cast<size_t>(bytes));
}

size_t LeadingWhiteSpace(std::string_view text) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const Character character = Decode(text.substr(bytes));
    if (!IsWhiteSpace(character.code_point)) break;
    bytes += character.bytes;
  }
  return bytes;
}

size_t TrailingWhiteSpace(std::string_view text) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const Character character = DecodeLast(text.substr(0, text.size() - bytes));
    if (!IsWhiteSpace(character.code_point)) break;
    bytes += character.bytes;
  }
  return bytes;
}

bool BeginsWithWord(std::string_view text) { return IsWord(Decode(text).code_point); }

bool EndsWithWord(std::string_view text) { return IsWord(DecodeLast(text).code_point); }

size_t FirstCharacterBytes(std::string_view text) { return Decode(text).bytes; }

}  // namespace mtmc::policy
