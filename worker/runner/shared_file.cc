// SPDX-License-Identifier: Apache-2.0
#include "worker/runner/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/unique_fd.h"

namespace mtmc::worker {

SharedMapping::SharedMapping(void* base, size_t mapped_bytes, std::span<std::byte> bytes)
    : base_(base), mapped_bytes_(mapped_bytes), bytes_(bytes) {}

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      mapped_bytes_(other.mapped_bytes_),
      bytes_(std::exchange(other.bytes_, {})) {}

SharedMapping& SharedMapping::operator=(SharedMapping&& other) noexcept {
  if (this == &other) return *this;
  Unmap();
  base_ = std::exchange(other.base_, nullptr);
  mapped_bytes_ = other.mapped_bytes_;
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

SharedMapping::~SharedMapping() { Unmap(); }

void SharedMapping::Unmap() {
  if (base_) munmap(base_, mapped_bytes_);
  base_ = nullptr;
}

absl::StatusOr<SharedMapping> SharedMapping::Open(const std::string& path, int64_t offset,
                                                  int64_t bytes) {
  const base::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) return base::SystemError(errno, "open " + path);

  struct stat status {};

  if (fstat(fd.get(), &status) != 0) return base::SystemError(errno, "fstat " + path);
  if (offset < 0 || bytes < 0 || offset > status.st_size || bytes > status.st_size - offset) {
    return absl::OutOfRangeError(
        absl::StrCat(path, " has ", status.st_size, " bytes, not ", bytes, " from ", offset));
  }
  if (bytes == 0) return SharedMapping(nullptr, 0, {});
  const int64_t start = offset - offset % sysconf(_SC_PAGESIZE);
  const auto mapped_bytes = static_cast<size_t>(offset - start + bytes);
  void* base = mmap(nullptr, mapped_bytes, PROT_READ, MAP_SHARED, fd.get(), start);
  if (base == MAP_FAILED) return base::SystemError(errno, "mmap " + path);
  return SharedMapping(
      base, mapped_bytes,
      {static_cast<std::byte*>(base) + (offset - start), static_cast<size_t>(bytes)});
}

absl::StatusOr<SharedMapping> SharedMapping::Create(const std::string& path, int64_t bytes) {
  unlink(path.c_str());
  const base::UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.is_open()) return base::SystemError(errno, "open " + path);
  if (bytes == 0) return SharedMapping(nullptr, 0, {});
  // Reserved, not only sized: a full disk is an error here and not a SIGBUS.
  const int error = posix_fallocate(fd.get(), 0, bytes);
  if (error != 0) return base::SystemError(error, "posix_fallocate " + path);
  void* base =
      mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) return base::SystemError(errno, "mmap " + path);
  return SharedMapping(base, static_cast<size_t>(bytes),
                       {static_cast<std::byte*>(base), static_cast<size_t>(bytes)});
}

}  // namespace mtmc::worker
