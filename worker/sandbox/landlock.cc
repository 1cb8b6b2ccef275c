// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/base/unique_fd.h"

namespace mtmc::worker {
namespace {

// Rights that came after the headers of Debian 12 (linux/landlock.h of Linux 6.8
// and 6.12 names them LANDLOCK_ACCESS_FS_TRUNCATE and so on).
constexpr uint64_t kRefer = uint64_t{1} << 13;
constexpr uint64_t kTruncate = uint64_t{1} << 14;
constexpr uint64_t kDeviceControl = uint64_t{1} << 15;
constexpr uint64_t kTcp = 3;     // bind, connect
constexpr uint64_t kScopes = 3;  // abstract sockets, signals

constexpr uint64_t kReadFile = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE;
constexpr uint64_t kReadFolder = kReadFile | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWriteFile = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
// The rights of version 1 are the lowest 13 bits.
constexpr uint64_t kAllOfVersion1 = (uint64_t{1} << 13) - 1;
// Nobody makes device files.
constexpr uint64_t kMakeDevices = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK;

// struct landlock_ruleset_attr with the fields of versions 4 and 6.
struct RulesetAttributes {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;
  uint64_t scoped;
};

uint64_t HandledFiles(int version) {
  uint64_t handled = kAllOfVersion1;
  if (version >= 2) handled |= kRefer;
  if (version >= 3) handled |= kTruncate;
  if (version >= 5) handled |= kDeviceControl;
  return handled;
}

// An older kernel knows a shorter structure and refuses more.
size_t SizeFor(int version) {
  if (version >= kLandlockScopes) return sizeof(RulesetAttributes);
  return version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

absl::Status Allow(int ruleset, const std::string& path, uint64_t for_file, uint64_t for_folder) {
  const base::UniqueFd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd.is_open()) return absl::OkStatus();

  struct stat status {};

  if (fstat(fd.get(), &status) != 0) return base::SystemError(errno, "fstat " + path);
  landlock_path_beneath_attr rule{.allowed_access = S_ISDIR(status.st_mode) ? for_folder : for_file,
                                  .parent_fd = fd.get()};
  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
    return base::SystemError(errno, "add a Landlock rule for " + path);
  }
  return absl::OkStatus();
}

}  // namespace

int LandlockVersion() {
  const long version =
      syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return std::max(0, static_cast<int>(version));
}

absl::Status RestrictWithLandlock(const LandlockRules& rules) {
  const int version = LandlockVersion();
  const uint64_t handled = HandledFiles(version);
  const RulesetAttributes attributes{
      .handled_access_fs = handled, .handled_access_net = kTcp, .scoped = kScopes};
  const base::UniqueFd ruleset(
      static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, SizeFor(version), 0)));
  if (!ruleset.is_open()) return base::SystemError(errno, "make a Landlock ruleset");
  for (const std::string& path : rules.readable) {
    MTMC_RETURN_IF_ERROR(Allow(ruleset.get(), path, kReadFile, kReadFolder));
  }
  for (const std::string& path : rules.listable) {
    MTMC_RETURN_IF_ERROR(Allow(ruleset.get(), path, 0, LANDLOCK_ACCESS_FS_READ_DIR));
  }
  const uint64_t on_file = (kWriteFile | kTruncate | kDeviceControl) & handled;
  for (const std::string& path : rules.devices) {
    MTMC_RETURN_IF_ERROR(
        Allow(ruleset.get(), path, on_file, on_file | LANDLOCK_ACCESS_FS_READ_DIR));
  }
  for (const std::string& path : rules.rewritable) {
    MTMC_RETURN_IF_ERROR(Allow(ruleset.get(), path, (kWriteFile | kTruncate) & handled,
                               (kReadFolder | kWriteFile | kTruncate) & handled));
  }
  for (const std::string& path : rules.writable) {
    MTMC_RETURN_IF_ERROR(Allow(ruleset.get(), path, on_file, handled & ~kMakeDevices));
  }
  if (syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
    return base::SystemError(errno, "restrict itself with Landlock");
  }
  return absl::OkStatus();
}

}  // namespace mtmc::worker
