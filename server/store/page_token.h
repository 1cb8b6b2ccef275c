// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace mtmc::store {

// An opaque page token: the position after which a listing goes on. `listing`
// names the query, so that a token of another one is refused.
std::string MakePageToken(const std::string& listing, int64_t position);

// The position of a token of the same listing, `start` for an empty token.
// INVALID_ARGUMENT with reason INVALID_PAGE_TOKEN otherwise.
absl::StatusOr<int64_t> ParsePageToken(const std::string& listing, const std::string& token,
                                       int64_t start);

// The page size to serve: 0 means 50, more than 500 means 500.
// INVALID_ARGUMENT with reason INVALID_PAGE_SIZE when negative.
absl::StatusOr<int> EffectivePageSize(int page_size);

}  // namespace mtmc::store
