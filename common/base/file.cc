// SPDX-License-Identifier: Apache-2.0
#include "common/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/id.h"
#include "common/base/status_macros.h"
#include "common/base/unique_fd.h"

namespace mtmc::base {
namespace {

absl::Status FileError(std::string_view verb, const std::filesystem::path& path) {
  const int error_number = errno;
  return SystemError(error_number, std::string(verb) + " " + path.string());
}

absl::Status WriteAll(int fd, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return FileError("write", path);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status WriteAndRename(const std::filesystem::path& temporary,
                            const std::filesystem::path& path, std::string_view bytes) {
  UniqueFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file.is_open()) return FileError("create", temporary);
  MTMC_RETURN_IF_ERROR(WriteAll(file.get(), bytes, path));
  if (::fsync(file.get()) != 0) return FileError("fsync", path);
  file.reset();
  if (::rename(temporary.c_str(), path.c_str()) != 0) return FileError("rename to", path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path, std::uint64_t max_bytes) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return FileError("open", path);

  struct stat info {};

  if (::fstat(file.get(), &info) != 0) return FileError("stat", path);
  if (S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path.string(), " is a folder"));
  }
  std::string bytes;
  // The size is a hint only: files of /proc say 0.
  std::size_t chunk = static_cast<std::size_t>(info.st_size) + 1;
  while (true) {
    const std::size_t old_size = bytes.size();
    if (old_size > max_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path.string(), " is larger than ", max_bytes, " bytes"));
    }
    chunk = std::min<std::size_t>(std::max<std::size_t>(chunk, 4096), max_bytes - old_size + 1);
    bytes.resize(old_size + chunk);
    const ssize_t count = ::read(file.get(), bytes.data() + old_size, chunk);
    if (count < 0 && errno != EINTR) return FileError("read", path);
    bytes.resize(old_size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return bytes;
  }
}

absl::Status WriteFileAtomically(const std::filesystem::path& path, std::string_view bytes) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  MTMC_RETURN_IF_ERROR(MakeFolder(folder));
  const std::filesystem::path temporary =
      folder / absl::StrCat(".", path.filename().string(), ".", MakeUuid4());
  if (absl::Status status = WriteAndRename(temporary, path, bytes); !status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  UniqueFd folder_fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_fd.is_open() || ::fsync(folder_fd.get()) != 0) return FileError("fsync", folder);
  return absl::OkStatus();
}

// Taken and not asked for: a file system says what is free, not what a quota leaves of it.
absl::Status CheckRoom(const std::filesystem::path& folder, std::uint64_t bytes) {
  const std::filesystem::path path = folder / absl::StrCat(".room.", MakeUuid4());
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) return FileError("create", path);
  ::unlink(path.c_str());
  while (::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) != 0) {
    // NFS before 4.2 takes no room ahead.
    if (errno == EOPNOTSUPP) return absl::OkStatus();
    if (errno != EINTR) return FileError(absl::StrCat("take ", bytes, " bytes in"), folder);
  }
  return absl::OkStatus();
}

absl::Status MakeFolder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return SystemError(error.value(), "make folder " + path.string());
  if (!std::filesystem::is_directory(path, error)) {
    return absl::FailedPreconditionError(absl::StrCat(path.string(), " is not a folder"));
  }
  return absl::OkStatus();
}

}  // namespace mtmc::base
