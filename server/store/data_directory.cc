// SPDX-License-Identifier: Apache-2.0
#include "server/store/data_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/rpc/error.h"

namespace mtmc::store {
namespace {

std::string ReadHolder(int fd) {
  std::array<char, 32> text;
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  if (size <= 0) return "another process";
  std::string pid(text.data(), static_cast<size_t>(size));
  absl::StripAsciiWhitespace(&pid);
  return "process " + pid;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DataDirectory>> DataDirectory::Open(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return base::SystemError(error.value(), absl::StrCat("cannot make folder ", path));
  const std::string lock_path = path + "/lock";
  const int fd = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return base::SystemError(errno, absl::StrCat("cannot open ", lock_path));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const std::string holder = ReadHolder(fd);
    close(fd);
    return rpc::MakeError(
        absl::StatusCode::kFailedPrecondition, "STORE_LOCKED",
        absl::StrCat("data directory ", path, " is used by ", holder,
                     "; stop that coordinator or give this one another --data-dir"),
        {{"path", path}});
  }
  // For the message of whoever comes next; the lock itself does not need it.
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    const int number = errno;
    close(fd);
    return base::SystemError(number, absl::StrCat("cannot write ", lock_path));
  }
  return std::unique_ptr<DataDirectory>(new DataDirectory(path, fd));
}

DataDirectory::DataDirectory(std::string path, int lock_fd)
    : path_(std::move(path)), lock_fd_(lock_fd) {}

DataDirectory::~DataDirectory() { close(lock_fd_); }

}  // namespace mtmc::store
