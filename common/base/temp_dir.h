// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "absl/status/statusor.h"

namespace mtmc::base {

// A new folder under $TMPDIR or /tmp that is removed with all it holds.
// Move-only: it owns the folder.
class TempDir {
 public:
  // The name begins with `prefix`.
  static absl::StatusOr<TempDir> Create(std::string_view prefix = "mtmc");

  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&& other) noexcept;
  ~TempDir();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TempDir(std::filesystem::path path) : path_(std::move(path)) {}

  void Remove();

  // Empty after a move.
  std::filesystem::path path_;
};

}  // namespace mtmc::base
