// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "mtmc/pipe/v1/builder.pb.h"

namespace mtmc::worker {

// Digest of all that the binary of one variant depends on: the program's text,
// the values of its parameters, the device, its toolchain and our own version.
// 64 hexadecimal digits.
std::string BuildKey(const pipe::v1::BuilderRequest::Build& build, const v1::Variant& variant);

// The bytes of a cache file: a header with the digest of the rest, and the
// message.
std::string ToCacheFile(const pipe::v1::BuilderResponse::Built& built);

// The inverse. DATA_LOSS for any other bytes: a file that was cut short, changed,
// or written by another version.
absl::StatusOr<pipe::v1::BuilderResponse::Built> ParseCacheFile(std::string_view bytes);

}  // namespace mtmc::worker
