// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace mtmc::base {

// A random UUID, version 4, lowercase with hyphens: for request ids.
std::string MakeUuid4();

// `prefix-` and 12 random characters of [a-z0-9]: the last segment of a
// resource name, valid by AIP-122 (RFC 1034 label). 36^12 is 4.7e18, so a
// million ids collide with probability 1e-7. REQUIRES: `prefix` matches
// [a-z][a-z0-9-]{0,49}.
std::string MakeResourceId(std::string_view prefix);

// Whether `id` may be chosen by a user: [a-z]([a-z0-9-]{0,61}[a-z0-9])?.
bool IsResourceId(std::string_view id);

}  // namespace mtmc::base
