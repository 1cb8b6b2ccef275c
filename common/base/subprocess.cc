// SPDX-License-Identifier: Apache-2.0
#include "common/base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/spawner.h"
#include "common/base/status_macros.h"

namespace mtmc::base {
namespace {

std::vector<std::string> MakeEnvironment(const SubprocessOptions& options) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == text.npos) continue;
    const std::string name(text.substr(0, equals));
    const auto& allowed = options.inherited_variables;
    if (!allowed || std::find(allowed->begin(), allowed->end(), name) != allowed->end()) {
      variables[name] = text.substr(equals + 1);
    }
  }
  for (const auto& [name, value] : options.variables) {
    if (value) {
      variables[name] = *value;
    } else {
      variables.erase(name);
    }
  }
  std::vector<std::string> environment;
  environment.reserve(variables.size());
  for (const auto& [name, value] : variables) environment.push_back(absl::StrCat(name, "=", value));
  return environment;
}

// The two ends of one standard stream; `ours` is open for pipes only.
struct Stream {
  UniqueFd ours;
  UniqueFd childs;
};

absl::StatusOr<Stream> OpenStream(const Stdio& stdio, int number) {
  const bool is_input = number == STDIN_FILENO;
  Stream stream;
  std::string path = "/dev/null";
  switch (stdio.kind) {
    case Stdio::Kind::kInherit:
      // A copy, so that the child's set of descriptors is explicit.
      stream.childs = UniqueFd(::fcntl(number, F_DUPFD_CLOEXEC, 3));
      if (stream.childs.is_open() || errno != EBADF) break;
      [[fallthrough]];  // The parent itself has no such stream.
    case Stdio::Kind::kNull:
      stream.childs = UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
      break;
    case Stdio::Kind::kPipe: {
      std::array<int, 2> ends{-1, -1};
      if (::pipe2(ends.data(), O_CLOEXEC) != 0) return SystemError(errno, "make a pipe");
      stream.ours = UniqueFd(ends[is_input ? 1 : 0]);
      stream.childs = UniqueFd(ends[is_input ? 0 : 1]);
      break;
    }
    case Stdio::Kind::kFile:
      path = stdio.path.string();
      stream.childs = UniqueFd(::open(
          path.c_str(), (is_input ? O_RDONLY : O_WRONLY | O_CREAT | O_APPEND) | O_CLOEXEC, 0644));
      break;
  }
  if (!stream.childs.is_open()) return SystemError(errno, "open " + path);
  return stream;
}

// Not pidfd_open() of <sys/pidfd.h>, which glibc 2.36 declares without C linkage.
UniqueFd OpenProcess(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

absl::Duration ToDuration(const timeval& time) {
  return absl::Seconds(time.tv_sec) + absl::Microseconds(time.tv_usec);
}

ExitReason ToExitReason(int status, const rusage& usage) {
  ExitReason reason;
  if (WIFSIGNALED(status)) {
    reason.signal = WTERMSIG(status);
  } else {
    reason.exit_code = WEXITSTATUS(status);
  }
  reason.cpu_time = ToDuration(usage.ru_utime) + ToDuration(usage.ru_stime);
  // Linux counts ru_maxrss in KiB.
  reason.max_resident_bytes = std::int64_t{usage.ru_maxrss} * 1024;
  return reason;
}

}  // namespace

std::string ExitReason::ToString() const {
  if (signal) {
    const char* name = ::sigabbrev_np(*signal);
    return absl::StrCat("killed by signal ", *signal, name ? absl::StrCat(" (SIG", name, ")") : "");
  }
  return absl::StrCat("exited with code ", exit_code.value_or(0));
}

struct Subprocess::State {
  static int64_t NextNumber() {
    static std::atomic<int64_t> last = 0;
    return ++last;
  }

  pid_t pid = 0;
  const int64_t number = NextNumber();
  UniqueFd exit_event;
  UniqueFd standard_input;
  UniqueFd standard_output;
  UniqueFd standard_error;

  // Orders signals before the reaping that frees the process number.
  absl::Mutex mu;
  std::optional<ExitReason> exit ABSL_GUARDED_BY(mu);
};

absl::StatusOr<Subprocess> Subprocess::Start(const SubprocessOptions& options) {
  if (options.argv.empty()) return absl::InvalidArgumentError("argv is empty");
  MTMC_ASSIGN_OR_RETURN(Stream input, OpenStream(options.standard_input, STDIN_FILENO));
  MTMC_ASSIGN_OR_RETURN(Stream output, OpenStream(options.standard_output, STDOUT_FILENO));
  MTMC_ASSIGN_OR_RETURN(Stream error, OpenStream(options.standard_error, STDERR_FILENO));
  SpawnRequest request{.argv = options.argv,
                       .environment = MakeEnvironment(options),
                       .working_folder = options.working_folder.string(),
                       .fds = {{input.childs.get(), STDIN_FILENO},
                               {output.childs.get(), STDOUT_FILENO},
                               {error.childs.get(), STDERR_FILENO}}};
  for (const auto& inherited : options.inherited_fds) {
    MTMC_CHECK(inherited.child_fd > STDERR_FILENO);
    request.fds.emplace_back(inherited.fd, inherited.child_fd);
  }
  auto state = std::make_unique<State>();
  MTMC_ASSIGN_OR_RETURN(state->pid, Spawn(request));
  state->exit_event = OpenProcess(state->pid);
  if (!state->exit_event.is_open()) {
    const int error_number = errno;
    ::kill(-state->pid, SIGKILL);
    ::waitpid(state->pid, nullptr, 0);
    return SystemError(error_number, "open a descriptor of process " + options.argv[0]);
  }
  state->standard_input = std::move(input.ours);
  state->standard_output = std::move(output.ours);
  state->standard_error = std::move(error.ours);
  return Subprocess(std::move(state));
}

Subprocess::Subprocess(std::unique_ptr<State> state) : state_(std::move(state)) {}

Subprocess::Subprocess(Subprocess&&) noexcept = default;

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
  // The old process ends with `old`, not with `other`.
  Subprocess old(std::move(state_));
  state_ = std::move(other.state_);
  return *this;
}

Subprocess::~Subprocess() {
  if (state_ == nullptr) return;
  Kill();
  Wait().IgnoreError();  // Without a deadline it cannot fail.
}

pid_t Subprocess::pid() const { return state_->pid; }

int64_t Subprocess::number() const { return state_->number; }

UniqueFd& Subprocess::standard_input() { return state_->standard_input; }

UniqueFd& Subprocess::standard_output() { return state_->standard_output; }

UniqueFd& Subprocess::standard_error() { return state_->standard_error; }

int Subprocess::exit_fd() const { return state_->exit_event.get(); }

absl::StatusOr<ExitReason> Subprocess::Wait(absl::Time deadline) {
  pollfd entry{.fd = exit_fd(), .events = POLLIN, .revents = 0};
  while (true) {
    const absl::Duration left =
        std::clamp(deadline - absl::Now(), absl::ZeroDuration(), absl::Hours(1));
    const auto left_ms = absl::ToInt64Milliseconds(left + absl::Microseconds(999));
    if (::poll(&entry, 1, static_cast<int>(left_ms)) > 0) break;
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat("process ", pid(), " still runs"));
    }
  }
  absl::MutexLock lock(&state_->mu);
  if (!state_->exit) {
    // The ended process still holds its number, so the group is still its own.
    ::kill(-pid(), SIGKILL);
    int status = 0;
    rusage usage{};
    while (::wait4(pid(), &status, 0, &usage) < 0) MTMC_CHECK(errno == EINTR);
    state_->exit = ToExitReason(status, usage);
  }
  return *state_->exit;
}

void Subprocess::Signal(int signal) {
  absl::MutexLock lock(&state_->mu);
  if (!state_->exit) ::kill(-pid(), signal);
}

ExitReason Subprocess::Stop(absl::Duration grace) {
  Signal(SIGTERM);
  absl::StatusOr<ExitReason> exit = Wait(absl::Now() + grace);
  if (!exit.ok()) {
    Kill();
    exit = Wait();
  }
  return *exit;
}

}  // namespace mtmc::base
