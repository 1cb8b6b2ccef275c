// SPDX-License-Identifier: Apache-2.0
#include "common/base/spawner.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/annotate.h"
#include "common/base/unique_fd.h"

namespace mtmc::base {
namespace {

// What the child reports through a pipe when it cannot execute.
struct ChildError {
  enum class Step { kDescriptors, kFolder, kExecute };
  Step step;
  int error_number;
};

// From here to execvpe() only async-signal-safe calls: the fork was made in a
// process with threads, so any lock may be held forever.
[[noreturn]] void Fail(int report_fd, ChildError::Step step) {
  const ChildError error{.step = step, .error_number = errno};
  // If the report is lost, the parent sees the exit code.
  [[maybe_unused]] const ssize_t ignored = ::write(report_fd, &error, sizeof error);
  ::_exit(127);
}

void ResetSignals() {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Moves `fds` to their numbers, in two steps, because a number may be taken by
// another source; everything else closes on exec.
bool PlaceDescriptors(std::pair<int, int>* fds, std::size_t count, int first_free) {
  for (std::size_t i = 0; i < count; ++i) {
    fds[i].first = ::fcntl(fds[i].first, F_DUPFD_CLOEXEC, first_free);
    if (fds[i].first < 0) return false;
  }
  if (::close_range(0, ~0U, CLOSE_RANGE_CLOEXEC) != 0) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (::dup2(fds[i].first, fds[i].second) < 0) return false;
  }
  return true;
}

struct Prepared {
  std::vector<char*> argv;
  std::vector<char*> environment;
  const char* working_folder;
  std::vector<std::pair<int, int>> fds;
  int first_free;
  pid_t parent;
};

[[noreturn]] void RunChild(Prepared& prepared, int report_fd) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above.
  if (::getppid() != prepared.parent) ::_exit(127);
  ResetSignals();
  // The report keeps out of the way of the numbers to be filled.
  report_fd = ::fcntl(report_fd, F_DUPFD_CLOEXEC, prepared.first_free);
  if (!PlaceDescriptors(prepared.fds.data(), prepared.fds.size(), prepared.first_free)) {
    Fail(report_fd, ChildError::Step::kDescriptors);
  }
  if (prepared.working_folder != nullptr && ::chdir(prepared.working_folder) != 0) {
    Fail(report_fd, ChildError::Step::kFolder);
  }
  ::execvpe(prepared.argv[0], prepared.argv.data(), prepared.environment.data());
  Fail(report_fd, ChildError::Step::kExecute);
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  // exec's signature lacks const for historic reasons; it writes nothing.
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

absl::Status ToStatus(const ChildError& error, const SpawnRequest& request) {
  switch (error.step) {
    case ChildError::Step::kDescriptors:
      return SystemError(error.error_number, "pass descriptors to " + request.argv[0]);
    case ChildError::Step::kFolder:
      return SystemError(error.error_number, "enter folder " + request.working_folder);
    case ChildError::Step::kExecute:
      break;
  }
  return SystemError(error.error_number, "start " + request.argv[0]);
}

absl::StatusOr<pid_t> ForkAndExecute(const SpawnRequest& request) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return SystemError(errno, "make a pipe");
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  int first_free = 3;
  for (const auto& [fd, child_fd] : request.fds) first_free = std::max(first_free, child_fd + 1);
  Prepared prepared{
      .argv = Pointers(request.argv),
      .environment = Pointers(request.environment),
      .working_folder = request.working_folder.empty() ? nullptr : request.working_folder.c_str(),
      .fds = request.fds,
      .first_free = first_free,
      .parent = ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) return SystemError(errno, "fork for " + request.argv[0]);
  if (pid == 0) RunChild(prepared, write_end.get());
  write_end.reset();
  // End of file: exec closed the pipe, so the program runs.
  ChildError error{};
  ssize_t count = 0;
  do {
    count = ::read(read_end.get(), &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  if (count != sizeof error) return pid;
  ::waitpid(pid, nullptr, 0);
  return ToStatus(error, request);
}

// The thread that forks, one request at a time.
class ForkThread {
 public:
  ForkThread() : thread_([this] { Serve(); }) {}

  absl::StatusOr<pid_t> Run(const SpawnRequest& request) ABSL_LOCKS_EXCLUDED(mu_) {
    Turn turn{.request = &request};
    absl::MutexLock lock(&mu_);
    waiting_.push_back(&turn);
    mu_.Await(absl::Condition(&turn.is_done));
    return std::move(turn.result);
  }

 private:
  struct Turn {
    const SpawnRequest* request;
    absl::StatusOr<pid_t> result = pid_t{0};
    bool is_done = false;
  };

  void Serve() {
    const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !waiting_.empty(); };
    while (true) {
      Turn* turn = nullptr;
      {
        absl::MutexLock lock(&mu_);
        mu_.Await(absl::Condition(&has_work));
        turn = waiting_.front();
        waiting_.erase(waiting_.begin());
      }
      absl::StatusOr<pid_t> result = ForkAndExecute(*turn->request);
      absl::MutexLock lock(&mu_);
      turn->result = std::move(result);
      turn->is_done = true;
    }
  }

  absl::Mutex mu_;
  std::vector<Turn*> waiting_ ABSL_GUARDED_BY(mu_);
  std::jthread thread_;
};

}  // namespace

absl::StatusOr<pid_t> Spawn(const SpawnRequest& request) {
  // Never destroyed: were the thread to end, its children would be killed.
  static ForkThread& thread = *new ForkThread;
  return thread.Run(request);
}

}  // namespace mtmc::base
