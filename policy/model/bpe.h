// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace mtmc::policy {

// Byte-pair encoding: cuts a piece into characters and joins neighbours in the
// order of a ranked list of merges. Immutable, so thread-safe.
class Bpe {
 public:
  struct Options {
    // Token text to id.
    absl::flat_hash_map<std::string, int32_t> vocabulary;
    // Pairs of token texts, best rank first.
    std::vector<std::pair<std::string, std::string>> merges;
    // Take a piece that is a token as it is, without merges.
    bool ignores_merges = false;
    // Write a character that is no token as its bytes `<0x..>`.
    bool has_byte_fallback = false;
    // Stands for a character that is no token; without it, it is left out.
    std::optional<std::string> unknown_token;
    // One unknown token for a run of unknown characters.
    bool fuses_unknown = false;
  };

  // INVALID_ARGUMENT when a merge has a part or a result that is no token, or
  // the unknown token is none.
  static absl::StatusOr<Bpe> Create(Options options);

  // Appends the ids of a piece. O(n log n) in its characters.
  // REQUIRES: piece is valid UTF-8.
  void Encode(std::string_view piece, std::vector<int32_t>& ids) const;

  // Id of a token text, if it is in the vocabulary.
  std::optional<int32_t> Find(std::string_view token) const;

  // One more than the largest id of the vocabulary.
  int32_t id_bound() const { return id_bound_; }

 private:
  struct Merge {
    int32_t rank = 0;
    int32_t id = 0;
  };

  Bpe() = default;
  std::vector<int32_t> Characters(std::string_view piece) const;
  const Merge* FindMerge(int32_t left, int32_t right) const;

  absl::flat_hash_map<std::string, int32_t> vocabulary_;
  // Left id in the upper half of the key, right id in the lower.
  absl::flat_hash_map<uint64_t, Merge> merges_;
  bool ignores_merges_ = false;
  bool has_byte_fallback_ = false;
  bool fuses_unknown_ = false;
  std::optional<int32_t> unknown_id_;
  int32_t id_bound_ = 0;
};

}  // namespace mtmc::policy
