// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox/minimal_root.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/base/unique_fd.h"
#include "worker/sandbox/identity.h"

namespace mtmc::worker {
namespace {

// Where the new root is put together: any folder that surely exists, because
// whatever is needed of the old root has been cloned by then.
constexpr char kStage[] = "/usr";

constexpr uint64_t kSafe = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

// Part of the old root, detached.
struct Tree {
  std::string path;

  struct stat status {};

  base::UniqueFd mount;
  bool is_writable = false;
};

// A path of the old root that only leads elsewhere.
struct Link {
  std::string path;
  std::string target;
};

struct Parts {
  // By their real paths.
  std::vector<Tree> trees;
  std::vector<Link> links;
  // Once more, by paths that lead through a link to them.
  std::vector<Tree> aliases;
};

absl::StatusOr<base::UniqueFd> CloneTree(const std::string& path, uint64_t attributes) {
  base::UniqueFd tree(
      open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
  if (!tree.is_open()) return base::SystemError(errno, "clone the mount of " + path);
  mount_attr change{
      .attr_set = attributes, .attr_clr = 0, .propagation = MS_PRIVATE, .userns_fd = 0};
  if (mount_setattr(tree.get(), "", AT_EMPTY_PATH | AT_RECURSIVE, &change, sizeof change) != 0) {
    return base::SystemError(errno, "protect the mount of " + path);
  }
  return tree;
}

std::string RealPath(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  std::string text = real == nullptr ? "" : real;
  std::free(real);
  return text;
}

absl::StatusOr<Tree> TakeTree(const std::string& path, uint64_t attributes, bool is_writable) {
  Tree tree{.path = path, .is_writable = is_writable};
  if (stat(path.c_str(), &tree.status) != 0) return base::SystemError(errno, "stat " + path);
  MTMC_ASSIGN_OR_RETURN(tree.mount, CloneTree(path, attributes));
  return tree;
}

// Takes `path`, and what it leads to, out of the old root. A path that does not
// exist is passed over.
absl::Status Take(const std::string& path, uint64_t attributes, bool is_writable, Parts& parts) {
  const std::string real = RealPath(path);
  if (real.empty()) return absl::OkStatus();
  MTMC_ASSIGN_OR_RETURN(Tree tree, TakeTree(real, attributes, is_writable));
  parts.trees.push_back(std::move(tree));
  if (real == path) return absl::OkStatus();

  struct stat status {};

  if (lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) {
    // Not by way of other links, which the new root may lack.
    parts.links.push_back({path, real});
    return absl::OkStatus();
  }
  MTMC_ASSIGN_OR_RETURN(Tree alias, TakeTree(path, attributes, is_writable));
  parts.aliases.push_back(std::move(alias));
  return absl::OkStatus();
}

absl::StatusOr<Parts> TakeAll(const Rights& rights) {
  Parts parts;
  for (const std::string& path : rights.readable) {
    MTMC_RETURN_IF_ERROR(Take(path, kSafe | MOUNT_ATTR_RDONLY, false, parts));
  }
  for (const std::string& path : rights.devices) {
    MTMC_RETURN_IF_ERROR(Take(path, MOUNT_ATTR_NOSUID, false, parts));
  }
  for (const std::string& path : rights.writable) {
    MTMC_RETURN_IF_ERROR(Take(path, kSafe, true, parts));
  }
  for (auto* trees : {&parts.trees, &parts.aliases}) {
    // A folder before what lies in it.
    std::stable_sort(trees->begin(), trees->end(), [](const Tree& a, const Tree& b) {
      return std::count(a.path.begin(), a.path.end(), '/') <
             std::count(b.path.begin(), b.path.end(), '/');
    });
  }
  return parts;
}

// Opens `path` as a process will see it whose root is `root`; links lead nowhere
// else.
base::UniqueFd OpenWithin(int root, const std::string& path) {
  open_how how{.flags = O_PATH | O_CLOEXEC, .mode = 0, .resolve = RESOLVE_IN_ROOT};
  return base::UniqueFd(
      static_cast<int>(syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
}

// The folder `path` within `root`, made with its parents if it is not there.
absl::StatusOr<base::UniqueFd> MakeFolderWithin(int root, const std::string& path) {
  base::UniqueFd folder = OpenWithin(root, "/");
  std::string so_far;
  for (const auto part : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    absl::StrAppend(&so_far, "/", part);
    base::UniqueFd next = OpenWithin(root, so_far);
    if (!next.is_open()) {
      if (mkdirat(folder.get(), std::string(part).c_str(), 0755) != 0) {
        return base::SystemError(errno, "make the folder " + so_far);
      }
      next = OpenWithin(root, so_far);
    }
    folder = std::move(next);
  }
  if (!folder.is_open()) return base::SystemError(errno, "open " + path);
  return folder;
}

std::pair<std::string, std::string> SplitName(const std::string& path) {
  const size_t slash = path.rfind('/');
  return {path.substr(0, slash), path.substr(slash + 1)};
}

absl::StatusOr<base::UniqueFd> MakeFileWithin(int root, const std::string& path) {
  const auto [folder_path, name] = SplitName(path);
  MTMC_ASSIGN_OR_RETURN(const base::UniqueFd folder, MakeFolderWithin(root, folder_path));
  base::UniqueFd file(
      openat(folder.get(), name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file.is_open()) return base::SystemError(errno, "make the file " + path);
  return file;
}

bool IsSame(int fd, const struct stat& status) {
  struct stat found {};

  return fstat(fd, &found) == 0 && found.st_dev == status.st_dev && found.st_ino == status.st_ino;
}

absl::Status Attach(int root, const Tree& tree) {
  base::UniqueFd place = OpenWithin(root, tree.path);
  // A readable folder that lies in one which is there already.
  if (place.is_open() && !tree.is_writable && IsSame(place.get(), tree.status)) {
    return absl::OkStatus();
  }
  if (!place.is_open()) {
    if (S_ISDIR(tree.status.st_mode)) {
      MTMC_ASSIGN_OR_RETURN(place, MakeFolderWithin(root, tree.path));
    } else {
      MTMC_RETURN_IF_ERROR(MakeFileWithin(root, tree.path).status());
      place = OpenWithin(root, tree.path);
    }
  }
  if (move_mount(tree.mount.get(), "", place.get(), "",
                 MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) {
    return base::SystemError(errno, "mount " + tree.path);
  }
  return absl::OkStatus();
}

absl::Status MakeLink(int root, const Link& link) {
  if (OpenWithin(root, link.path).is_open()) return absl::OkStatus();
  const auto [folder_path, name] = SplitName(link.path);
  MTMC_ASSIGN_OR_RETURN(const base::UniqueFd folder, MakeFolderWithin(root, folder_path));
  if (symlinkat(link.target.c_str(), folder.get(), name.c_str()) == 0 || errno == EEXIST) {
    return absl::OkStatus();
  }
  return base::SystemError(errno, "link " + link.path);
}

absl::Status WriteFileWithin(int root, const std::string& path, std::string_view text) {
  MTMC_ASSIGN_OR_RETURN(const base::UniqueFd file, MakeFileWithin(root, path));
  if (write(file.get(), text.data(), text.size()) < 0) {
    return base::SystemError(errno, "write " + path);
  }
  return absl::OkStatus();
}

// tmpfs, empty and bounded, at `path` of this namespace.
absl::Status MountMemory(const std::string& path, uint64_t bytes, const char* mode) {
  const std::string options = absl::StrCat("mode=", mode, ",size=", bytes, ",nr_inodes=", 1 << 16);
  if (mount("tmpfs", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    return base::SystemError(errno, "mount a tmpfs");
  }
  return absl::OkStatus();
}

// Who it is, by name, and the links that programs take for granted.
absl::Status AddFixedFiles(int root) {
  const std::string ids = absl::StrCat(kInnerId, ":", kInnerId);
  MTMC_RETURN_IF_ERROR(WriteFileWithin(
      root, "/etc/passwd", absl::StrCat("mtmc:x:", ids, ":mtmc:/tmp:/usr/sbin/nologin\n")));
  MTMC_RETURN_IF_ERROR(
      WriteFileWithin(root, "/etc/group", absl::StrCat("mtmc:x:", kInnerId, ":\n")));
  MTMC_RETURN_IF_ERROR(WriteFileWithin(root, "/etc/nsswitch.conf", "passwd: files\n"));
  for (const auto& [path, target] :
       {std::pair{"/dev/fd", "/proc/self/fd"}, std::pair{"/dev/stdin", "/proc/self/fd/0"},
        std::pair{"/dev/stdout", "/proc/self/fd/1"}, std::pair{"/dev/stderr", "/proc/self/fd/2"}}) {
    MTMC_RETURN_IF_ERROR(MakeLink(root, {path, target}));
  }
  return absl::OkStatus();
}

// Settings of the machine. Nobody can write to them; but a process that may not
// become nobody keeps its user, and root's may even without a capability.
constexpr const char* kMachineSettings[] = {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq",
                                            "/proc/bus", "/proc/fs"};

absl::Status ProtectSettings(int root) {
  if (IsPrivileged()) return absl::OkStatus();
  for (const char* path : kMachineSettings) {
    const std::string staged = absl::StrCat(kStage, path);
    if (access(staged.c_str(), F_OK) != 0) continue;
    MTMC_ASSIGN_OR_RETURN(const base::UniqueFd tree, CloneTree(staged, kSafe | MOUNT_ATTR_RDONLY));
    const base::UniqueFd place = OpenWithin(root, path);
    if (move_mount(tree.get(), "", place.get(), "",
                   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) {
      return base::SystemError(errno, absl::StrCat("protect ", path));
    }
  }
  return absl::OkStatus();
}

absl::Status AddProcesses(int root, std::optional<base::UniqueFd> hosts) {
  MTMC_ASSIGN_OR_RETURN(const base::UniqueFd place, MakeFolderWithin(root, "/proc"));
  if (hosts) {
    if (move_mount(hosts->get(), "", place.get(), "",
                   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0) {
      return ProtectSettings(root);
    }
    return base::SystemError(errno, "mount the host's /proc");
  }
  const std::string path = absl::StrCat(kStage, "/proc");
  if (mount("proc", path.c_str(), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    return base::SystemError(errno, "mount a fresh /proc");
  }
  return ProtectSettings(root);
}

// Makes kStage the root and lets the old one go.
absl::Status SwitchRoot(int root) {
  if (fchdir(root) != 0) return base::SystemError(errno, "enter the new root");
  // Both in one place: the old root lies on top of the new one, and is taken off.
  if (syscall(SYS_pivot_root, ".", ".") != 0) return base::SystemError(errno, "pivot_root");
  if (umount2(".", MNT_DETACH) != 0) return base::SystemError(errno, "leave the old root");
  if (chdir("/") != 0) return base::SystemError(errno, "enter /");
  mount_attr change{
      .attr_set = kSafe | MOUNT_ATTR_RDONLY, .attr_clr = 0, .propagation = 0, .userns_fd = 0};
  if (mount_setattr(AT_FDCWD, "/", 0, &change, sizeof change) != 0) {
    return base::SystemError(errno, "make the root read-only");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status EnterMinimalRoot(const Rights& rights, bool has_own_processes) {
  // What is mounted here must not appear outside, nor the reverse.
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return base::SystemError(errno, "make mounts private");
  }
  MTMC_ASSIGN_OR_RETURN(const Parts parts, TakeAll(rights));
  std::optional<base::UniqueFd> processes;
  if (!has_own_processes) {
    MTMC_ASSIGN_OR_RETURN(processes, CloneTree("/proc", kSafe));
  }
  // Holds nothing but names of mounts.
  MTMC_RETURN_IF_ERROR(MountMemory(kStage, 1 << 20, "0755"));
  const base::UniqueFd root(open(kStage, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.is_open()) return base::SystemError(errno, "open the new root");
  for (const char* folder : kPrivateFolders) {
    MTMC_RETURN_IF_ERROR(MakeFolderWithin(root.get(), folder).status());
    MTMC_RETURN_IF_ERROR(MountMemory(absl::StrCat(kStage, folder), rights.scratch_bytes, "1777"));
  }
  MTMC_RETURN_IF_ERROR(AddProcesses(root.get(), std::move(processes)));
  for (const Tree& tree : parts.trees) MTMC_RETURN_IF_ERROR(Attach(root.get(), tree));
  // Before what lies behind them: the folder that an alias would make takes a link's place.
  for (const Link& link : parts.links) MTMC_RETURN_IF_ERROR(MakeLink(root.get(), link));
  for (const Tree& alias : parts.aliases) MTMC_RETURN_IF_ERROR(Attach(root.get(), alias));
  MTMC_RETURN_IF_ERROR(AddFixedFiles(root.get()));
  return SwitchRoot(root.get());
}

}  // namespace mtmc::worker
