// SPDX-License-Identifier: Apache-2.0
#include "policy/model/tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "policy/model/unicode.h"

namespace mtmc::policy {
namespace {

struct Found {
  const AddedToken* token = nullptr;
  size_t begin = 0;
};

// The leftmost token at or after `from`, the longest where several begin.
Found FindAdded(const std::vector<AddedToken>& tokens, std::string_view text, size_t from) {
  Found found{.token = nullptr, .begin = text.size()};
  for (const AddedToken& token : tokens) {
    // Only a place before the best so far is of interest.
    const std::string_view range =
        text.substr(0, std::min(text.size(), found.begin + token.content.size()));
    const size_t begin = range.find(token.content, from);
    if (begin != range.npos && begin < found.begin) found = {.token = &token, .begin = begin};
  }
  return found;
}

bool StandsAlone(std::string_view text, size_t begin, size_t end) {
  const bool is_free_left = begin == 0 || !EndsWithWord(text.substr(0, begin));
  const bool is_free_right = end == text.size() || !BeginsWithWord(text.substr(end));
  return is_free_left && is_free_right;
}

}  // namespace

Tokenizer::Tokenizer(Options options) : options_(std::move(options)) {
  id_bound_ = options_.bpe.id_bound();
  const auto raise_bound = [this](int32_t id) { id_bound_ = std::max(id_bound_, id + 1); };
  for (AddedToken& token : options_.added_tokens) {
    raise_bound(token.id);
    if (token.content.empty()) continue;
    if (!token.is_normalized) {
      raw_tokens_.push_back(token);
      continue;
    }
    if (options_.normalizes_nfc) {
      // The reader refused contents that are not UTF-8.
      if (absl::StatusOr<std::string> content = ToNfc(token.content); content.ok()) {
        token.content = *std::move(content);
      }
    }
    normalized_tokens_.push_back(token);
  }
  for (const int32_t id : options_.prefix) raise_bound(id);
  for (const int32_t id : options_.suffix) raise_bound(id);
  const auto is_longer = [](const AddedToken& a, const AddedToken& b) {
    return a.content.size() > b.content.size();
  };
  std::stable_sort(raw_tokens_.begin(), raw_tokens_.end(), is_longer);
  std::stable_sort(normalized_tokens_.begin(), normalized_tokens_.end(), is_longer);
}

template <typename Plain>
absl::Status Tokenizer::SplitAtAdded(const std::vector<AddedToken>& tokens, std::string_view text,
                                     std::vector<int32_t>& ids, Plain plain) const {
  size_t done = 0;
  size_t from = 0;
  while (from < text.size()) {
    const Found found = FindAdded(tokens, text, from);
    if (found.token == nullptr) break;
    size_t begin = found.begin;
    size_t end = begin + found.token->content.size();
    from = end;
    if (found.token->is_single_word && !StandsAlone(text, begin, end)) continue;
    if (found.token->strips_left) begin -= TrailingWhiteSpace(text.substr(done, begin - done));
    if (found.token->strips_right) end += LeadingWhiteSpace(text.substr(end));
    from = end;
    if (begin > done) MTMC_RETURN_IF_ERROR(plain(text.substr(done, begin - done)));
    ids.push_back(found.token->id);
    done = end;
  }
  return done < text.size() ? plain(text.substr(done)) : absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(std::string_view text) const {
  if (!IsUtf8(text)) return absl::InvalidArgumentError("text is not valid UTF-8");
  std::vector<int32_t> ids;
  const auto encode_pieces = [&](std::string_view part) -> absl::Status {
    MTMC_ASSIGN_OR_RETURN(const std::vector<std::string> pieces,
                          options_.pre_tokenizer.Split(part));
    for (const std::string& piece : pieces) options_.bpe.Encode(piece, ids);
    return absl::OkStatus();
  };
  const auto encode_normalized = [&](std::string_view part) -> absl::Status {
    if (!options_.normalizes_nfc) return SplitAtAdded(normalized_tokens_, part, ids, encode_pieces);
    MTMC_ASSIGN_OR_RETURN(const std::string normalized, ToNfc(part));
    return SplitAtAdded(normalized_tokens_, normalized, ids, encode_pieces);
  };
  MTMC_RETURN_IF_ERROR(SplitAtAdded(raw_tokens_, text, ids, encode_normalized));
  return ids;
}

}  // namespace mtmc::policy
