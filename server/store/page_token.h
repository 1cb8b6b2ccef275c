// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace mtmc::store {

// Where a page ends, in a listing that is ordered by `key`, and for equal ones by
// `position`.
struct PageMark {
  int64_t key = 0;
  int64_t position = 0;
};

// An opaque page token: the position after which a listing goes on. `listing`
// names the query, so that a token of another one is refused.
std::string MakePageToken(const std::string& listing, int64_t position);
std::string MakePageToken(const std::string& listing, const PageMark& mark);

// The same, in a listing that is ordered by name, after the one of that name.
std::string MakeNameToken(const std::string& listing, const std::string& name);

// The name of a token of the same listing, empty for an empty token. INVALID_ARGUMENT with
// reason INVALID_PAGE_TOKEN otherwise.
absl::StatusOr<std::string> ParseNameToken(const std::string& listing, const std::string& token);

// The position, or mark, of a token of the same listing, `start` for an empty token.
// INVALID_ARGUMENT with reason INVALID_PAGE_TOKEN otherwise.
absl::StatusOr<int64_t> ParsePageToken(const std::string& listing, const std::string& token,
                                       int64_t start);
absl::StatusOr<PageMark> ParsePageMark(const std::string& listing, const std::string& token,
                                       const PageMark& start);

// The page size to serve: 0 means 50, more than 500 means 500.
// INVALID_ARGUMENT with reason INVALID_PAGE_SIZE when negative.
absl::StatusOr<int> EffectivePageSize(int page_size);

}  // namespace mtmc::store
