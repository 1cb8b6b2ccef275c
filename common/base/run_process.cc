// SPDX-License-Identifier: Apache-2.0
#include "common/base/run_process.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"

namespace mtmc::base {
namespace {

// Reads what is there; closes `fd` at the end of the stream.
void Drain(UniqueFd& fd, std::string& kept, std::size_t max_bytes) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) return fd.reset();
  kept.append(buffer.data(), std::min(static_cast<std::size_t>(count), max_bytes - kept.size()));
}

// Writes what fits; closes `fd` when all is written or nobody reads.
void Feed(UniqueFd& fd, std::string_view& input) {
  const ssize_t count = ::write(fd.get(), input.data(), input.size());
  if (count > 0) input.remove_prefix(static_cast<std::size_t>(count));
  const bool is_broken = count < 0 && errno != EAGAIN && errno != EINTR;
  if (input.empty() || is_broken) fd.reset();
}

}  // namespace

absl::StatusOr<CompletedProcess> RunProcess(SubprocessOptions options, const RunLimits& limits,
                                            const std::string& input) {
  options.standard_input = input.empty() ? Stdio::Null() : Stdio::Pipe();
  options.standard_output = Stdio::Pipe();
  options.standard_error = Stdio::Pipe();
  const absl::Time deadline = absl::Now() + limits.timeout;
  // A child that does not read its input is no reason to die.
  ::signal(SIGPIPE, SIG_IGN);
  MTMC_ASSIGN_OR_RETURN(Subprocess process, Subprocess::Start(options));
  if (!input.empty()) ::fcntl(process.standard_input().get(), F_SETFL, O_NONBLOCK);
  std::string_view left = input;
  CompletedProcess result;
  while (process.standard_output().is_open() || process.standard_error().is_open()) {
    // poll() skips entries whose descriptor is -1.
    std::array<pollfd, 4> entries{
        {{.fd = process.standard_output().get(), .events = POLLIN, .revents = 0},
         {.fd = process.standard_error().get(), .events = POLLIN, .revents = 0},
         {.fd = process.standard_input().get(), .events = POLLOUT, .revents = 0},
         {.fd = process.exit_fd(), .events = POLLIN, .revents = 0}}};
    const absl::Duration wait =
        std::clamp(deadline - absl::Now(), absl::ZeroDuration(), absl::Hours(1));
    const int ready = ::poll(entries.data(), entries.size(),
                             static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
    if (absl::Now() >= deadline) break;
    if (ready <= 0) continue;
    if (entries[0].revents)
      Drain(process.standard_output(), result.output, limits.max_output_bytes);
    if (entries[1].revents) Drain(process.standard_error(), result.error, limits.max_output_bytes);
    if (entries[2].revents) Feed(process.standard_input(), left);
    // A grandchild may hold the streams open; reaping kills it.
    if (entries[3].revents) process.Wait().IgnoreError();
  }
  absl::StatusOr<ExitReason> exit = process.Wait(deadline);
  if (!exit.ok()) {
    return absl::DeadlineExceededError(
        absl::StrCat(options.argv[0], " ran longer than ", absl::FormatDuration(limits.timeout)));
  }
  result.exit = *exit;
  return result;
}

}  // namespace mtmc::base
