// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox/supervisor.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/base/unique_fd.h"
#include "worker/sandbox/confine.h"

namespace mtmc::worker {
namespace {

// fork() with a number of our choice in the namespace; as ever if that fails.
pid_t ForkAs(pid_t number) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<uintptr_t>(&number);
  arguments.set_tid_size = 1;
  const long child = syscall(SYS_clone3, &arguments, sizeof arguments);
  return child >= 0 ? static_cast<pid_t>(child) : fork();
}

pid_t WaitFor(pid_t child, int* status) {
  pid_t ended = 0;
  do {
    ended = waitpid(child, status, 0);
  } while (ended < 0 && errno == EINTR);
  return ended;
}

// Nobody but the program keeps the channel open, so that its end is seen.
void CloseAllBut(int kept) {
  if (kept > 0) close_range(0, static_cast<unsigned>(kept) - 1, 0);
  close_range(static_cast<unsigned>(kept) + 1, ~0U, 0);
}

// True once the other end of the pipe is closed, that is, the launcher is gone.
bool IsAlone(int report) {
  pollfd entry{.fd = report, .events = 0, .revents = 0};
  return poll(&entry, 1, 0) > 0 && (entry.revents & POLLERR) != 0;
}

// Reaps until the program has ended, and says how it did.
[[noreturn]] void Reap(pid_t program, int report) {
  int status = 0;
  while (true) {
    const pid_t ended = WaitFor(-1, &status);
    if (ended == program) break;
    if (ended < 0) _exit(kLauncherFailed);
  }
  const ssize_t written = write(report, &status, sizeof status);
  // What else lives in the namespace dies with this process.
  _exit(written == sizeof status ? 0 : kLauncherFailed);
}

[[noreturn]] void EndLike(int status) {
  if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
  kill(getpid(), number);
  _exit(128 + number);
}

void BlockSignals() {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

absl::Status DieWithParent() {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0) return absl::OkStatus();
  return base::SystemError(errno, "set the parent-death signal");
}

absl::Status Supervise(const NamespaceSteps& steps) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return base::SystemError(errno, "make a pipe");
  base::UniqueFd reader(ends[0]);
  base::UniqueFd writer(ends[1]);
  // A signal to the group is for the program, which gets it too.
  sigset_t before;
  sigprocmask(SIG_SETMASK, nullptr, &before);
  BlockSignals();
  const pid_t launcher = getpid();
  const pid_t init = fork();
  if (init < 0) return base::SystemError(errno, "fork into the pid namespace");
  if (init == 0) {
    reader.reset();
    if (!DieWithParent().ok() || IsAlone(writer.get())) _exit(kLauncherFailed);
    steps.prepare();
    const pid_t program = ForkAs(launcher);
    if (program < 0) _exit(kLauncherFailed);
    if (program == 0) {
      writer.reset();
      sigprocmask(SIG_SETMASK, &before, nullptr);
      steps.become();
      _exit(kLauncherFailed);
    }
    CloseAllBut(writer.get());
    steps.settle();
    if (!DieWithParent().ok() || IsAlone(writer.get())) _exit(kLauncherFailed);
    Reap(program, writer.get());
  }
  writer.reset();
  CloseAllBut(reader.get());
  // Into the daemon's group: a kill of the program's group leaves this process to
  // see its end, which takes as long as a driver takes to free the device.
  setpgid(0, getpgid(getppid()));
  int status = 0;
  const ssize_t count = read(reader.get(), &status, sizeof status);
  int init_status = 0;
  WaitFor(init, &init_status);
  EndLike(count == sizeof status ? status : init_status);
}

}  // namespace mtmc::worker
