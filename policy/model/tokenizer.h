// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "policy/model/bpe.h"
#include "policy/model/pre_tokenizer.h"

namespace mtmc::policy {

// A token that is found in the text as it stands, before anything is cut.
struct AddedToken {
  std::string content;
  int32_t id = 0;
  // Found in the text after normalization instead of before.
  bool is_normalized = false;
  // Only between characters that are no word characters.
  bool is_single_word = false;
  // Takes white space before or after it along.
  bool strips_left = false;
  bool strips_right = false;
};

// Text to token ids, as the `tokenizer.json` of a Hugging Face folder says.
// Made by `ReadTokenizer` (tokenizer_json.h). Immutable, so thread-safe.
//
//   text -> added tokens -> normalization -> pre-tokenizer -> merges
class Tokenizer {
 public:
  struct Options {
    std::vector<AddedToken> added_tokens;
    bool normalizes_nfc = false;
    PreTokenizer pre_tokenizer;
    Bpe bpe;
    // What the template puts before and after a single text, such as the
    // beginning-of-text token.
    std::vector<int32_t> prefix;
    std::vector<int32_t> suffix;
  };

  explicit Tokenizer(Options options);

  // Ids of the text without prefix and suffix. INVALID_ARGUMENT when it is not
  // UTF-8.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const;

  const std::vector<int32_t>& prefix() const { return options_.prefix; }

  const std::vector<int32_t>& suffix() const { return options_.suffix; }

  // One more than the largest id that Encode can return.
  int32_t id_bound() const { return id_bound_; }

 private:
  // Cuts `text` at the added tokens of one list and calls `plain` with what
  // lies between them.
  template <typename Plain>
  absl::Status SplitAtAdded(const std::vector<AddedToken>& tokens, std::string_view text,
                            std::vector<int32_t>& ids, Plain plain) const;

  Options options_;
  // Longest content first, so that the first match is the longest.
  std::vector<AddedToken> raw_tokens_;
  std::vector<AddedToken> normalized_tokens_;
  int32_t id_bound_ = 0;
};

}  // namespace mtmc::policy
