// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace mtmc::worker {

// A range of a file in memory. Move-only: it owns the mapping.
class SharedMapping {
 public:
  // Read only. `offset` may be any. NOT_FOUND, or OUT_OF_RANGE when the file is
  // shorter than the range.
  static absl::StatusOr<SharedMapping> Open(const std::string& path, int64_t offset, int64_t bytes);

  // A new file of `bytes`, writable; a file of that name is unlinked first, so
  // that who still maps the old one keeps its contents.
  static absl::StatusOr<SharedMapping> Create(const std::string& path, int64_t bytes);

  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&& other) noexcept;
  ~SharedMapping();

  // Writable only after Create.
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  SharedMapping(void* base, size_t mapped_bytes, std::span<std::byte> bytes);

  void Unmap();

  // Null when the range is empty or after a move.
  void* base_ = nullptr;
  size_t mapped_bytes_ = 0;
  std::span<std::byte> bytes_;
};

}  // namespace mtmc::worker
