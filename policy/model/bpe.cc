// SPDX-License-Identifier: Apache-2.0
#include "policy/model/bpe.h"

#include <algorithm>
#include <queue>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/string_view.h"
#include "policy/model/unicode.h"

namespace mtmc::policy {
namespace {

uint64_t PairKey(int32_t left, int32_t right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
}

// A token of a piece under work; a doubly linked list by index, so that a join
// is O(1). A joined-away symbol has the id -1.
struct Symbol {
  int32_t id = 0;
  int previous = -1;
  int next = -1;
};

// A possible join of the symbol at `position` with the one after it.
struct Candidate {
  int32_t rank = 0;
  int position = 0;
  int32_t id = 0;

  // For a priority queue with the smallest rank, then the leftmost, on top.
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : position > other.position;
  }
};

}  // namespace

absl::StatusOr<Bpe> Bpe::Create(Options options) {
  Bpe bpe;
  bpe.vocabulary_ = std::move(options.vocabulary);
  bpe.ignores_merges_ = options.ignores_merges;
  bpe.has_byte_fallback_ = options.has_byte_fallback;
  bpe.fuses_unknown_ = options.fuses_unknown;
  for (const auto& [token, id] : bpe.vocabulary_) bpe.id_bound_ = std::max(bpe.id_bound_, id + 1);
  if (options.unknown_token) {
    bpe.unknown_id_ = bpe.Find(*options.unknown_token);
    if (!bpe.unknown_id_) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown token '", *options.unknown_token, "' is not in the vocabulary"));
    }
  }
  bpe.merges_.reserve(options.merges.size());
  int32_t rank = 0;
  for (const auto& [left, right] : options.merges) {
    const std::optional<int32_t> left_id = bpe.Find(left);
    const std::optional<int32_t> right_id = bpe.Find(right);
    const std::optional<int32_t> joined_id = bpe.Find(left + right);
    if (!left_id || !right_id || !joined_id) {
      return absl::InvalidArgumentError(
          absl::StrCat("merge ", rank, " ('", left, "' and '", right,
                       "') has a part that is not in the vocabulary"));
    }
    bpe.merges_[PairKey(*left_id, *right_id)] = {.rank = rank, .id = *joined_id};
    ++rank;
  }
  return bpe;
}

std::optional<int32_t> Bpe::Find(std::string_view token) const {
  const auto found = vocabulary_.find(base::ToAbsl(token));
  return found == vocabulary_.end() ? std::nullopt : std::optional(found->second);
}

const Bpe::Merge* Bpe::FindMerge(int32_t left, int32_t right) const {
  const auto found = merges_.find(PairKey(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

std::vector<int32_t> Bpe::Characters(std::string_view piece) const {
  std::vector<int32_t> ids;
  bool last_is_unknown = false;
  while (!piece.empty()) {
    const std::string_view character = piece.substr(0, FirstCharacterBytes(piece));
    piece.remove_prefix(character.size());
    if (const std::optional<int32_t> id = Find(character)) {
      ids.push_back(*id);
      last_is_unknown = false;
      continue;
    }
    if (has_byte_fallback_) {
      std::vector<int32_t> bytes;
      for (const char c : character) {
        const std::string token = absl::StrFormat("<0x%02X>", static_cast<unsigned char>(c));
        if (const std::optional<int32_t> id = Find(token)) bytes.push_back(*id);
      }
      if (bytes.size() == character.size()) {
        ids.insert(ids.end(), bytes.begin(), bytes.end());
        last_is_unknown = false;
        continue;
      }
    }
    if (unknown_id_ && !(fuses_unknown_ && last_is_unknown)) ids.push_back(*unknown_id_);
    last_is_unknown = unknown_id_.has_value();
  }
  return ids;
}

void Bpe::Encode(std::string_view piece, std::vector<int32_t>& ids) const {
  if (ignores_merges_) {
    if (const std::optional<int32_t> id = Find(piece)) {
      ids.push_back(*id);
      return;
    }
  }
  const std::vector<int32_t> characters = Characters(piece);
  std::vector<Symbol> symbols(characters.size());
  const int count = static_cast<int>(symbols.size());
  const auto at = [&](int index) -> Symbol& { return symbols[static_cast<size_t>(index)]; };
  for (int i = 0; i < count; ++i) {
    at(i) = {.id = characters[static_cast<size_t>(i)],
             .previous = i - 1,
             .next = i + 1 < count ? i + 1 : -1};
  }

  std::priority_queue<Candidate> candidates;
  const auto consider = [&](int position) {
    if (position < 0 || at(position).next < 0) return;
    const Merge* merge = FindMerge(at(position).id, at(at(position).next).id);
    if (merge == nullptr) return;
    candidates.push({.rank = merge->rank, .position = position, .id = merge->id});
  };
  for (int i = 0; i + 1 < count; ++i) consider(i);

  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Symbol& left = at(best.position);
    if (left.id < 0 || left.next < 0) continue;
    Symbol& right = at(left.next);
    // An earlier join may have changed one of the two since.
    const Merge* merge = FindMerge(left.id, right.id);
    if (merge == nullptr || merge->id != best.id) continue;
    left.id = best.id;
    right.id = -1;
    left.next = right.next;
    if (left.next >= 0) at(left.next).previous = best.position;
    consider(left.previous);
    consider(best.position);
  }
  for (int i = count > 0 ? 0 : -1; i >= 0; i = at(i).next) ids.push_back(at(i).id);
}

}  // namespace mtmc::policy
