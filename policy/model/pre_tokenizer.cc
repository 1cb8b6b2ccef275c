// SPDX-License-Identifier: Apache-2.0
#define PCRE2_CODE_UNIT_WIDTH 8
#include "policy/model/pre_tokenizer.h"

#include <pcre2.h>

#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace mtmc::policy {
namespace {

// The pre-tokenizers in use have under 300 characters.
constexpr size_t kLongestPattern = 16384;
// A token pattern needs a few steps per character; text is at most a few
// hundred kilobytes. These stop a hostile pattern after about a second.
constexpr uint32_t kMatchLimit = 20'000'000;
constexpr uint32_t kHeapLimitKibibytes = 65536;

// White_Space of Unicode, as the inside of a character class. PCRE2's own \s
// differs by U+180E, which lost the property in Unicode 6.3.
constexpr char kWhiteSpace[] =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";

// Replaces \s everywhere and \S outside of classes by the class above.
std::string SpellOutWhiteSpace(const std::string& pattern) {
  std::string result;
  bool is_in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      if (escaped == 's') {
        result += is_in_class ? std::string(kWhiteSpace) : absl::StrCat("[", kWhiteSpace, "]");
      } else if (escaped == 'S' && !is_in_class) {
        result += absl::StrCat("[^", kWhiteSpace, "]");
      } else {
        result += {c, escaped};
      }
      continue;
    }
    if (c == '[') is_in_class = true;
    if (c == ']') is_in_class = false;
    result += c;
  }
  return result;
}

std::string PcreMessage(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

PCRE2_SPTR AsCodeUnits(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

// GPT-2's table: printable Latin-1 stands for itself, the other 68 bytes for
// the characters from U+0100 on, in order.
std::array<std::string, 256> MakeByteTable() {
  std::array<std::string, 256> table;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
                              (byte >= 0xae && byte <= 0xff);
    const int code_point = is_printable ? byte : next++;
    std::string& text = table[static_cast<size_t>(byte)];
    if (code_point < 0x80) {
      text = static_cast<char>(code_point);
    } else {
      text = {static_cast<char>(0xc0 | (code_point >> 6)),
              static_cast<char>(0x80 | (code_point & 0x3f))};
    }
  }
  return table;
}

std::string ToByteLevel(const std::string& piece) {
  static const std::array<std::string, 256>& table = *new std::array(MakeByteTable());
  std::string result;
  for (const char c : piece) result += table[static_cast<unsigned char>(c)];
  return result;
}

struct Part {
  std::string_view text;
  bool is_match = false;
};

absl::StatusOr<std::vector<Part>> PartsOf(const SplitStep& step, std::string_view piece) {
  MTMC_ASSIGN_OR_RETURN(const std::vector<Regex::Match> matches, step.pattern.FindAll(piece));
  std::vector<Part> parts;
  const auto add = [&](size_t begin, size_t end, bool is_match) {
    if (end > begin) parts.push_back({piece.substr(begin, end - begin), is_match != step.inverts});
  };
  size_t position = 0;
  for (const Regex::Match& match : matches) {
    add(position, match.begin, false);
    add(match.begin, match.end, true);
    position = match.end;
  }
  add(position, piece.size(), false);
  return parts;
}

// Appends the parts to `pieces` under the step's behaviour.
void Assemble(SplitStep::Behavior behavior, const std::vector<Part>& parts,
              std::vector<std::string>& pieces) {
  using Behavior = SplitStep::Behavior;
  const Part* previous = nullptr;
  std::string pending;
  for (const Part& part : parts) {
    switch (behavior) {
      case Behavior::kIsolated:
        pieces.emplace_back(part.text);
        break;
      case Behavior::kRemoved:
        if (!part.is_match) pieces.emplace_back(part.text);
        break;
      case Behavior::kMergedWithPrevious:
        if (part.is_match && previous != nullptr && !previous->is_match) {
          pieces.back() += part.text;
        } else {
          pieces.emplace_back(part.text);
        }
        break;
      case Behavior::kMergedWithNext:
        if (part.is_match) {
          if (!pending.empty()) pieces.push_back(std::exchange(pending, {}));
          pending = part.text;
        } else {
          pieces.push_back(std::exchange(pending, {}) + std::string(part.text));
        }
        break;
      case Behavior::kContiguous:
        if (previous != nullptr && previous->is_match == part.is_match) {
          pieces.back() += part.text;
        } else {
          pieces.emplace_back(part.text);
        }
        break;
    }
    previous = &part;
  }
  if (!pending.empty()) pieces.push_back(std::move(pending));
}

}  // namespace

const char kGpt2Pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

void Regex::Deleter::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

absl::StatusOr<Regex> Regex::Create(const std::string& pattern) {
  if (pattern.size() > kLongestPattern) {
    return absl::InvalidArgumentError(
        absl::StrCat("pattern has ", pattern.size(), " bytes, must be at most ", kLongestPattern));
  }
  const std::string spelled = SpellOutWhiteSpace(pattern);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(AsCodeUnits(spelled), spelled.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (code == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pattern '", pattern, "' does not compile: ", PcreMessage(error), " near byte ", offset));
  }
  // Where just-in-time compilation is not possible, the interpreter matches.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  return Regex(code);
}

absl::StatusOr<std::vector<Regex::Match>> Regex::FindAll(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
      pcre2_match_data_create_from_pattern(code_.get(), nullptr), &pcre2_match_data_free);
  const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> limits(
      pcre2_match_context_create(nullptr), &pcre2_match_context_free);
  pcre2_set_match_limit(limits.get(), kMatchLimit);
  pcre2_set_heap_limit(limits.get(), kHeapLimitKibibytes);
  std::vector<Match> matches;
  size_t position = 0;
  while (position < text.size()) {
    // An empty match is of no use to a tokenizer: ask for another one.
    const int result = pcre2_match(code_.get(), AsCodeUnits(text), text.size(), position,
                                   PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, match.get(), limits.get());
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("pre-tokenizer pattern gave up: ", PcreMessage(result)));
    }
    const PCRE2_SIZE* const range = pcre2_get_ovector_pointer(match.get());
    // \K in a lookaround could put the end before the start.
    if (range[0] < position || range[1] <= range[0]) {
      return absl::InvalidArgumentError("pre-tokenizer pattern matches backwards");
    }
    matches.push_back({.begin = range[0], .end = range[1]});
    position = range[1];
  }
  return matches;
}

absl::StatusOr<std::vector<std::string>> PreTokenizer::Split(std::string_view text) const {
  std::vector<std::string> pieces;
  if (!text.empty()) pieces.emplace_back(text);
  for (const PreTokenizerStep& step : steps_) {
    std::vector<std::string> next;
    for (const std::string& piece : pieces) {
      if (const auto* split = std::get_if<SplitStep>(&step)) {
        MTMC_ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(*split, piece));
        Assemble(split->behavior, parts, next);
      } else if (std::holds_alternative<PrefixSpaceStep>(step)) {
        next.push_back(piece.starts_with(' ') ? piece : " " + piece);
      } else {
        next.push_back(ToByteLevel(piece));
      }
    }
    pieces = std::move(next);
  }
  return pieces;
}

}  // namespace mtmc::policy
