// SPDX-License-Identifier: Apache-2.0
#include "worker/builder/child_process.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/proto_channel.h"
#include "common/base/status_macros.h"
#include "worker/builder/reaper.h"

namespace mtmc::worker {
namespace {

constexpr absl::Duration kPollSlice = absl::Milliseconds(50);

// From closing the channel to an exit. A process that takes longer is killed, which
// changes its report and nothing else.
constexpr absl::Duration kFarewell = absl::Milliseconds(500);
constexpr absl::Duration kFarewellSlice = absl::Milliseconds(1);

// For the orderly end of an idle process, whose folder is removed next.
constexpr absl::Duration kOrderlyEnd = absl::Milliseconds(500);

// All that a compiler, PyTorch and a driver need; above all no credentials.
std::vector<std::string> InheritedVariables() {
  return {"PATH",
          "HOME",
          "LANG",
          "LC_ALL",
          "TMPDIR",
          "LD_LIBRARY_PATH",
          "CUDA_VISIBLE_DEVICES",
          "NVIDIA_VISIBLE_DEVICES",
          "OMP_NUM_THREADS",
          "OCL_ICD_VENDORS",
          "POCL_MAX_PTHREAD_COUNT",
          "ASAN_OPTIONS",
          "TSAN_OPTIONS",
          "UBSAN_OPTIONS"};
}

// How `process` ends, read while its driver still takes its device's context down,
// which can be long after the exit was decided. Absent when it goes on, and where
// /proc tells nothing.
std::optional<int> ReadDecidedEnd(pid_t process) {
  auto text = base::ReadFile(absl::StrCat("/proc/", process, "/stat"));
  if (!text.ok()) return std::nullopt;
  // The name may hold anything; behind its parenthesis are numbered fields.
  const size_t name_end = text->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields =
      absl::StrSplit(absl::StripAsciiWhitespace(text->substr(name_end + 1)), ' ');
  constexpr size_t kFirstField = 3;
  constexpr size_t kFlags = 9 - kFirstField;
  constexpr size_t kExitCode = 52 - kFirstField;
  // PF_EXITING of the kernel's sched.h.
  constexpr uint32_t kExiting = 0x4;
  uint32_t flags = 0;
  int code = 0;
  if (fields.size() <= kExitCode || !absl::SimpleAtoi(fields[kFlags], &flags) ||
      !absl::SimpleAtoi(fields[kExitCode], &code) || (flags & kExiting) == 0) {
    return std::nullopt;
  }
  return code;
}

// How the program of `process`, which closed its channel, ends by itself; absent
// when it does not.
std::optional<base::ExitReason> AwaitOwnEnd(base::Subprocess& process, bool is_behind_launcher) {
  const absl::Time deadline = absl::Now() + kFarewell;
  while (absl::Now() < deadline) {
    auto reason = process.Wait(absl::Now() + kFarewellSlice);
    if (reason.ok()) return *reason;
    const pid_t program = is_behind_launcher ? FindProgram(process.pid()) : process.pid();
    if (const auto code = ReadDecidedEnd(program)) {
      base::ExitReason decided;
      if (WIFSIGNALED(*code)) {
        decided.signal = WTERMSIG(*code);
      } else {
        decided.exit_code = WEXITSTATUS(*code);
      }
      return decided;
    }
  }
  return std::nullopt;
}

}  // namespace

ChildProcess::ChildProcess(Options options, base::Subprocess process, base::MessageChannel channel)
    : options_(std::move(options)),
      is_behind_launcher_(options_.confinement != nullptr &&
                          options_.confinement->isolation.has_own_processes()),
      number_(process.number()),
      process_(std::move(process)),
      channel_(std::move(channel)) {
  std::vector<base::UniqueFd> streams;
  streams.push_back(std::move(process_->standard_output()));
  streams.push_back(std::move(process_->standard_error()));
  watch_ = std::make_unique<ChildWatch>(
      std::move(streams), ChildWatch::Options{.process = process_->pid(),
                                              .max_resident_bytes = options_.max_resident_bytes,
                                              .kill = [this] { process_->Kill(); }});
}

ChildProcess::~ChildProcess() {
  if (!process_) return;
  process_->Kill();
  if (!process_->Wait(absl::Now() + kOrderlyEnd).ok()) Bury();
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(Options options) {
  MTMC_RETURN_IF_ERROR(base::MakeFolder(options.scratch));
  // Room for a program of 1 MiB in every variant of a sweep.
  MTMC_ASSIGN_OR_RETURN(
      auto pair, base::MessageChannel::CreatePair({.max_message_bytes = uint32_t{256} << 20}));
  base::SubprocessOptions start;
  start.argv = options.argv;
  start.inherited_variables = InheritedVariables();
  start.variables = {// Compiled work-group functions outlive the process that compiled them.
                     {"POCL_CACHE_DIR", absl::StrCat(options.scratch, "/pocl")},
                     {"CUDA_CACHE_PATH", absl::StrCat(options.scratch, "/cuda")},
                     // The order that nvidia-smi and NVML use.
                     {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}};
  start.working_folder = options.scratch;
  start.standard_output = base::Stdio::Pipe();
  start.standard_error = base::Stdio::Pipe();
  start.inherited_fds = {{.fd = pair.child.get(), .child_fd = kChannelFd}};
  MTMC_RETURN_IF_ERROR(base::MakeFolder(absl::StrCat(options.scratch, "/pocl")));
  if (options.confinement) MTMC_RETURN_IF_ERROR(Confine(*options.confinement, start));
  MTMC_ASSIGN_OR_RETURN(base::Subprocess process, base::Subprocess::Start(start));
  pair.child.reset();
  return std::unique_ptr<ChildProcess>(
      new ChildProcess(std::move(options), std::move(process), std::move(pair.channel)));
}

ChildProcess::Answer ChildProcess::Exchange(const google::protobuf::MessageLite& request,
                                            google::protobuf::MessageLite& response,
                                            absl::Time deadline) {
  Answer sent = Send(request, deadline);
  return sent.ending == Ending::kAnswered ? Receive(response, deadline) : sent;
}

ChildProcess::Answer ChildProcess::Send(const google::protobuf::MessageLite& request,
                                        absl::Time deadline) {
  const absl::Status status = base::SendProto(channel_, request, deadline);
  if (status.ok()) return {Ending::kAnswered, ""};
  if (absl::IsDeadlineExceeded(status)) return {Ending::kTimedOut, Bury()};
  return Dead(std::string(status.message()));
}

ChildProcess::Answer ChildProcess::Receive(google::protobuf::MessageLite& response,
                                           absl::Time deadline) {
  while (true) {
    const absl::Time slice = std::min(deadline, absl::Now() + kPollSlice);
    const absl::Status status = base::ReceiveProtoInto(channel_, response, slice);
    if (status.ok()) return {Ending::kAnswered, ""};
    if (!absl::IsDeadlineExceeded(status)) return Dead(std::string(status.message()));
    if (absl::Now() >= deadline) return {Ending::kTimedOut, Bury()};
    if (options_.is_cancelled()) return {Ending::kCancelled, Bury()};
  }
}

bool ChildProcess::AwaitAnswer(absl::Time deadline) {
  pollfd entry{.fd = channel_.read_fd(), .events = POLLIN, .revents = 0};
  const absl::Duration left =
      std::clamp(deadline - absl::Now(), absl::ZeroDuration(), absl::Hours(1));
  return ::poll(&entry, 1, static_cast<int>(absl::ToInt64Milliseconds(left))) > 0;
}

// The ending of a process that closed its channel or broke its rules, which is
// about to exit by itself in the first case: its own exit code says more than our
// signal.
ChildProcess::Answer ChildProcess::Dead(const std::string& message) {
  const auto reason = AwaitOwnEnd(*process_, is_behind_launcher_);
  const int64_t exceeded_bytes = watch_->exceeded_bytes();
  const std::string text = absl::StrCat(Bury(), "\n", message);
  if (exceeded_bytes > 0) {
    return {Ending::kOutOfMemory, absl::StrCat("killed because it held ", exceeded_bytes >> 20,
                                               " MiB of the host's ", "memory, the limit is ",
                                               options_.max_resident_bytes >> 20, " MiB\n", text)};
  }
  if (!reason) return {Ending::kDied, absl::StrCat("went on without its channel\n", text)};
  return {reason->signal == SIGKILL ? Ending::kKilled : Ending::kDied,
          absl::StrCat(reason->ToString(), "\n", text)};
}

std::string ChildProcess::Bury() {
  if (!process_) return "";
  process_->Kill();
  watch_->Stop();
  Reaper::Default().Take(*std::move(process_), options_.name);
  process_.reset();
  return watch_->Text();
}

}  // namespace mtmc::worker
