// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mtmc::base {

// The bytes of a file. NOT_FOUND if there is none, FAILED_PRECONDITION if it is
// a folder, RESOURCE_EXHAUSTED if it is larger than `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path,
                                     std::uint64_t max_bytes = std::uint64_t{1} << 30);

// Writes `bytes` so that any reader, and any restart after a crash, sees the old
// file or the new one: temporary file in the same folder, fsync, rename, fsync
// of the folder. Missing folders are made. A full disk is RESOURCE_EXHAUSTED and
// leaves nothing behind.
absl::Status WriteFileAtomically(const std::filesystem::path& path, std::string_view bytes);

// Whether `folder` has room for a file of `bytes`, found by taking it for a moment.
// RESOURCE_EXHAUSTED if the disk or a quota is full, or what else a write would have met. OK on
// a file system that takes no room ahead.
absl::Status CheckRoom(const std::filesystem::path& folder, std::uint64_t bytes);

// Makes a folder and its parents; it may exist. `path` being a file is
// FAILED_PRECONDITION.
absl::Status MakeFolder(const std::filesystem::path& path);

}  // namespace mtmc::base
