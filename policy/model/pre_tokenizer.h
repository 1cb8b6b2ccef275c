// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

struct pcre2_real_code_8;

namespace mtmc::policy {

// A compiled regular expression over UTF-8 with Unicode classes. `\s` means
// the White_Space property, as in the engine that tokenizers are trained with.
// Immutable, so thread-safe; matching is bounded in steps and memory.
class Regex {
 public:
  // One match, in bytes of the text.
  struct Match {
    size_t begin = 0;
    size_t end = 0;
  };

  // INVALID_ARGUMENT, with the place, when the pattern does not compile.
  static absl::StatusOr<Regex> Create(const std::string& pattern);

  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // All non-empty matches from left to right. RESOURCE_EXHAUSTED when the
  // pattern backtracks beyond its limit.
  // REQUIRES: text is valid UTF-8.
  absl::StatusOr<std::vector<Match>> FindAll(std::string_view text) const;

 private:
  struct Deleter {
    void operator()(pcre2_real_code_8* code) const;
  };

  explicit Regex(pcre2_real_code_8* code) : code_(code) {}

  std::unique_ptr<pcre2_real_code_8, Deleter> code_;
};

// Cuts every piece at the matches of a pattern.
struct SplitStep {
  // What becomes of a match.
  enum class Behavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

  Regex pattern;
  Behavior behavior = Behavior::kIsolated;
  // Exchanges the parts of matches and gaps.
  bool inverts = false;
};

// Puts a space before a piece that does not begin with one.
struct PrefixSpaceStep {};

// Writes every byte of a piece as one printable character, GPT-2's table.
struct ByteLevelStep {};

using PreTokenizerStep = std::variant<SplitStep, PrefixSpaceStep, ByteLevelStep>;

// Cuts text into the pieces that byte-pair merges never cross. Immutable.
class PreTokenizer {
 public:
  explicit PreTokenizer(std::vector<PreTokenizerStep> steps) : steps_(std::move(steps)) {}

  // Pieces in order; joined they are the text, but for removed matches, added
  // prefix spaces and the byte table. REQUIRES: text is valid UTF-8.
  absl::StatusOr<std::vector<std::string>> Split(std::string_view text) const;

 private:
  std::vector<PreTokenizerStep> steps_;
};

// The pattern that a byte-level pre-tokenizer applies when nothing else does.
extern const char kGpt2Pattern[];

}  // namespace mtmc::policy
