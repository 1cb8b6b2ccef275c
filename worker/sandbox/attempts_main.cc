// SPDX-License-Identifier: Apache-2.0
//
// Tries, one after the other, what a confined process must not be able to do, and
// prints for each `name 0` (it could) or `name ERRNO` (it could not). Run by
// sandbox_test.cc from within the sandbox:
//
//   mtmc-sandbox-attempts OWN OTHER SECRET DAEMON [cuda|host]
//
// OWN is its writable folder, OTHER one that it may read, SECRET a file that it
// may not, DAEMON the number of a process outside. The last word seals it first.
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "worker/sandbox/seal.h"

namespace {

// More than any test allows.
constexpr int kManyProcesses = 400;
constexpr size_t kManyBytes = size_t{64} << 20;

void Report(const std::string& name, int error) { std::cout << name << " " << error << std::endl; }

// For calls that return -1 and set errno.
void Try(const std::string& name, long result) { Report(name, result < 0 ? errno : 0); }

void TryOpen(const std::string& name, const std::string& path, int flags) {
  errno = 0;
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  Report(name, fd < 0 ? errno : 0);
  if (fd >= 0) close(fd);
}

void TryFiles(const std::string& own, const std::string& other, const std::string& secret,
              const std::string& daemon) {
  TryOpen("file.read-shadow", "/etc/shadow", O_RDONLY);
  TryOpen("file.read-secret", secret, O_RDONLY);
  TryOpen("file.write-root", "/mtmc-attempt", O_WRONLY | O_CREAT);
  TryOpen("file.write-usr", "/usr/mtmc-attempt", O_WRONLY | O_CREAT);
  TryOpen("file.read-other", other + "/tensor", O_RDONLY);
  TryOpen("file.write-other", other + "/tensor", O_WRONLY);
  TryOpen("file.create-in-other", other + "/new", O_WRONLY | O_CREAT);
  TryOpen("file.write-own", own + "/new", O_WRONLY | O_CREAT);
  TryOpen("file.memory-of-init", "/proc/1/mem", O_RDWR);
  TryOpen("file.memory-of-self", "/proc/self/mem", O_WRONLY);
  TryOpen("file.environment-of-daemon", "/proc/" + daemon + "/environ", O_RDONLY);
  TryOpen("file.core-pattern", "/proc/sys/kernel/core_pattern", O_WRONLY);
  Try("file.unlink-own", unlink((own + "/new").c_str()));
  Try("file.make-device", mknod((own + "/device").c_str(), S_IFCHR | 0600, 0x0103));
}

void TrySockets() {
  Try("socket.tcp", socket(AF_INET, SOCK_STREAM, 0));
  Try("socket.udp6", socket(AF_INET6, SOCK_DGRAM, 0));
  Try("socket.netlink", socket(AF_NETLINK, SOCK_RAW, 0));
  Try("socket.raw-packet", socket(AF_PACKET, SOCK_RAW, 0));
  Try("socket.local", socket(AF_UNIX, SOCK_STREAM, 0));
}

void TryProcesses(pid_t daemon) {
  Try("process.signal-daemon", kill(daemon, 0));
  Try("process.ptrace-parent", ptrace(PTRACE_ATTACH, getppid(), nullptr, nullptr));
  iovec ours{.iov_base = &daemon, .iov_len = sizeof daemon};
  Try("process.read-memory", process_vm_readv(getppid(), &ours, 1, &ours, 1, 0));
  Try("process.pidfd-getfd", syscall(SYS_pidfd_getfd, 0, 0, 0));
  const pid_t child = fork();
  if (child == 0) {
    execl("/usr/bin/true", "true", nullptr);
    _exit(errno);
  }
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  Report("process.execute", child < 0 ? EPERM : WEXITSTATUS(status));
  bool has_thread = false;
  try {
    std::thread([&] { has_thread = true; }).join();
  } catch (const std::system_error& error) {
    Report("process.thread", error.code().value());
  }
  if (has_thread) Report("process.thread", 0);
}

void TryPrivileges(const std::string& own) {
  Try("privilege.mount", mount("tmpfs", own.c_str(), "tmpfs", 0, nullptr));
  Try("privilege.remount-root", mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND, nullptr));
  Try("privilege.unmount-proc", umount2("/proc", MNT_DETACH));
  Try("privilege.pivot-root", syscall(SYS_pivot_root, ".", "."));
  Try("privilege.chroot", chroot("."));
  Try("privilege.user-namespace", unshare(CLONE_NEWUSER));
  Try("privilege.become-root", setuid(0));
  Try("privilege.gain-network", unshare(CLONE_NEWNET));
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct halves[2]{};
  syscall(SYS_capget, &header, halves);
  const bool has_any = (halves[0].permitted | halves[1].permitted | halves[0].effective |
                        halves[1].effective | halves[0].inheritable) != 0;
  Report("privilege.capabilities", has_any ? 0 : EPERM);
  Report("privilege.new-ones", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? EPERM : 0);
}

void TryKernel() {
  Try("kernel.keyctl", syscall(SYS_keyctl, 0, 0, 0, 0, 0));
  Try("kernel.bpf", syscall(SYS_bpf, 0, nullptr, 0));
  std::array<char, 256> parameters{};
  Try("kernel.io-uring", syscall(SYS_io_uring_setup, 1, parameters.data()));
  Try("kernel.userfaultfd", syscall(SYS_userfaultfd, 1));
  Try("kernel.perf-event", syscall(SYS_perf_event_open, parameters.data(), 0, -1, -1, 0));
  Try("kernel.file-handle", syscall(SYS_open_by_handle_at, -1, nullptr, 0));
  Try("kernel.module", syscall(SYS_finit_module, -1, "", 0));
  Try("kernel.shared-memory", shmget(IPC_PRIVATE, 4096, 0600));
  Try("kernel.log", syscall(SYS_syslog, 2, parameters.data(), 16));
}

// The bound of the private folder: 0 if it holds all of kManyBytes.
void TryToFill(const std::string& name, const std::string& folder) {
  const std::string path = folder + "/fill";
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const std::vector<char> block(size_t{1} << 20);
  size_t written = 0;
  ssize_t count = 1;
  while (fd >= 0 && written < kManyBytes && count > 0) {
    count = write(fd, block.data(), block.size());
    written += count > 0 ? static_cast<size_t>(count) : 0;
  }
  Report(name, written < kManyBytes ? errno : 0);
  if (fd >= 0) close(fd);
  unlink(path.c_str());
}

void TryLimits() {
  const char* folder = std::getenv("TMPDIR");
  TryToFill("limit.scratch", folder == nullptr ? "/tmp" : folder);
  rlimit core{};
  getrlimit(RLIMIT_CORE, &core);
  Report("limit.core", core.rlim_max == 0 ? EPERM : 0);
  // The children end when the pipe does; a sealed process could not kill them.
  std::array<int, 2> ends{-1, -1};
  if (pipe(ends.data()) != 0) return;
  int error = 0;
  int num_children = 0;
  while (error == 0 && num_children < kManyProcesses) {
    const pid_t child = fork();
    if (child == 0) {
      close(ends[1]);
      char end = 0;
      _exit(static_cast<int>(read(ends[0], &end, 1)));
    }
    if (child < 0) {
      error = errno;
    } else {
      ++num_children;
    }
  }
  Report("limit.processes", error);
  close(ends[1]);
  while (wait(nullptr) > 0) {
  }
}

void CountDescriptors(int allowed) {
  int highest = -1;
  for (int fd = 0; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) highest = fd;
  }
  Report("inherited.descriptors", highest < allowed ? EPERM : 0);
  Report("inherited.environment", std::getenv("MTMC_SECRET") == nullptr ? EPERM : 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  CountDescriptors(3);
  const std::string own = argv[1];
  if (argc > 5) {
    const bool is_host = std::string(argv[5]) == "host";
    const auto sealed = mtmc::worker::Seal(is_host ? mtmc::worker::SealedDevice::kHost
                                                   : mtmc::worker::SealedDevice::kCuda);
    Report("seal", sealed.ok() ? 0 : EPERM);
  }
  TryFiles(own, argv[2], argv[3], argv[4]);
  TrySockets();
  TryProcesses(std::atoi(argv[4]));
  TryPrivileges(own);
  TryKernel();
  TryLimits();
  Report("end", 0);
  return 0;
}
