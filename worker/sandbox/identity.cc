// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox/identity.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/base/unique_fd.h"

namespace mtmc::worker {
namespace {

// The two halves of each set of 64 capabilities.
struct Capabilities {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct halves[2]{};
};

bool HasCapability(int number) {
  Capabilities own;
  if (syscall(SYS_capget, &own.header, own.halves) != 0) return false;
  return (own.halves[number / 32].effective >> (number % 32) & 1U) != 0;
}

absl::Status WriteOwn(const char* file, const std::string& text) {
  const std::string path = absl::StrCat("/proc/self/", file);
  const base::UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.is_open() || write(fd.get(), text.data(), text.size()) < 0) {
    return base::SystemError(errno, "write " + path);
  }
  return absl::OkStatus();
}

absl::Status SetLimit(__rlimit_resource resource, uint64_t value, std::string_view name) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return base::SystemError(errno, "getrlimit");
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, value);
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(resource, &limit) == 0) return absl::OkStatus();
  return base::SystemError(errno, absl::StrCat("limit ", std::string(name)));
}

}  // namespace

bool IsPrivileged() {
  return geteuid() == 0 && HasCapability(CAP_SYS_ADMIN) && HasCapability(CAP_SETUID) &&
         HasCapability(CAP_SETGID) && HasCapability(CAP_CHOWN);
}

absl::Status EnterUserNamespace() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWUSER) != 0) return base::SystemError(errno, "make a user namespace");
  // Without it an ordinary user may not map a group.
  MTMC_RETURN_IF_ERROR(WriteOwn("setgroups", "deny"));
  MTMC_RETURN_IF_ERROR(WriteOwn("uid_map", absl::StrCat(kInnerId, " ", user, " 1")));
  return WriteOwn("gid_map", absl::StrCat(kInnerId, " ", group, " 1"));
}

absl::Status GiveFolders(const std::vector<std::string>& writable, unsigned owner) {
  for (const std::string& folder : writable) {
    std::error_code error;
    for (auto entry = std::filesystem::recursive_directory_iterator(folder, error);
         !error && entry != std::filesystem::recursive_directory_iterator();
         entry.increment(error)) {
      // Never through a link, which may lead anywhere. What a child removes meanwhile is gone.
      struct stat status {};

      if (lstat(entry->path().c_str(), &status) == 0 && status.st_uid != owner) {
        (void)lchown(entry->path().c_str(), owner, owner);
      }
    }
    if (lchown(folder.c_str(), owner, owner) != 0) {
      return base::SystemError(errno, "give away " + folder);
    }
  }
  return absl::OkStatus();
}

absl::Status BecomeNobody(const std::vector<std::string>& devices) {
  std::vector<gid_t> groups;
  for (const std::string& device : devices) {
    struct stat status {};

    const bool is_there = stat(device.c_str(), &status) == 0;
    const bool is_for_all = (status.st_mode & S_IROTH) != 0 && (status.st_mode & S_IWOTH) != 0;
    if (is_there && !is_for_all && status.st_gid != 0) groups.push_back(status.st_gid);
  }
  if (setgroups(groups.size(), groups.data()) != 0 ||
      setresgid(kOuterId, kOuterId, kOuterId) != 0 ||
      setresuid(kOuterId, kOuterId, kOuterId) != 0) {
    return base::SystemError(errno, "become nobody");
  }
  // The change of user made the process unreadable to itself; /proc/self/uid_map
  // is written next.
  if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) return base::SystemError(errno, "PR_SET_DUMPABLE");
  return absl::OkStatus();
}

absl::Status DropCapabilities() {
  // EINVAL: past the kernel's last one. EPERM: none to lose, as for any user.
  for (int number = 0; number < 64; ++number) {
    if (prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0) {
      if (errno == EINVAL || errno == EPERM) break;
      return base::SystemError(errno, "drop a capability");
    }
  }
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  Capabilities none;
  if (syscall(SYS_capset, &none.header, none.halves) != 0) {
    return base::SystemError(errno, "drop all capabilities");
  }
  return absl::OkStatus();
}

absl::Status SetNoNewPrivileges() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) return absl::OkStatus();
  return base::SystemError(errno, "set no_new_privs");
}

absl::Status SetLimits(const Rights::Limits& limits, bool counts_processes) {
  MTMC_RETURN_IF_ERROR(SetLimit(RLIMIT_CORE, 0, "core"));
  MTMC_RETURN_IF_ERROR(SetLimit(RLIMIT_NOFILE, limits.open_files, "open files"));
  MTMC_RETURN_IF_ERROR(SetLimit(RLIMIT_FSIZE, limits.file_bytes, "file size"));
  if (limits.address_bytes != 0) {
    MTMC_RETURN_IF_ERROR(SetLimit(RLIMIT_AS, limits.address_bytes, "address space"));
  }
  if (!counts_processes) return absl::OkStatus();
  return SetLimit(RLIMIT_NPROC, limits.processes, "processes");
}

}  // namespace mtmc::worker
