// SPDX-License-Identifier: Apache-2.0
#include "worker/builder/child_process.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/proto_channel.h"
#include "common/base/status_macros.h"

namespace mtmc::worker {
namespace {

// What a dead process has to say is at the end of its text.
constexpr size_t kDetailBytes = size_t{8} << 10;

constexpr absl::Duration kPollSlice = absl::Milliseconds(50);

// From closing the channel to the end of the process; a core dump may take long.
constexpr absl::Duration kFarewell = absl::Seconds(2);

// A killed process is gone at once, unless it hangs in the kernel's driver.
constexpr absl::Duration kBurial = absl::Seconds(10);

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

std::string Tail(const std::string& path) {
  auto text = base::ReadFile(path);
  if (!text.ok()) return "";
  return text->size() <= kDetailBytes ? *text : text->substr(text->size() - kDetailBytes);
}

}  // namespace

ChildProcess::ChildProcess(Options options, base::Subprocess process, base::MessageChannel channel,
                           std::string log)
    : options_(std::move(options)),
      process_(std::move(process)),
      channel_(std::move(channel)),
      log_(std::move(log)) {}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(Options options) {
  MTMC_RETURN_IF_ERROR(base::MakeFolder(options.scratch));
  const std::string log = absl::StrCat(options.scratch, "/", options.name, ".log");
  unlink(log.c_str());
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
  start.standard_output = base::Stdio::File(log);
  start.standard_error = base::Stdio::File(log);
  start.inherited_fds = {{.fd = pair.child.get(), .child_fd = kChannelFd}};
  MTMC_RETURN_IF_ERROR(base::MakeFolder(absl::StrCat(options.scratch, "/pocl")));
  MTMC_ASSIGN_OR_RETURN(base::Subprocess process, base::Subprocess::Start(start));
  pair.child.reset();
  return std::unique_ptr<ChildProcess>(
      new ChildProcess(std::move(options), std::move(process), std::move(pair.channel), log));
}

ChildProcess::Answer ChildProcess::Exchange(const google::protobuf::MessageLite& request,
                                            google::protobuf::MessageLite& response,
                                            absl::Time deadline) {
  absl::Status status = base::SendProto(channel_, request, deadline);
  while (status.ok()) {
    if (options_.is_cancelled()) return {Ending::kCancelled, Bury()};
    const absl::Time slice = std::min(deadline, absl::Now() + kPollSlice);
    status = base::ReceiveProtoInto(channel_, response, slice);
    if (status.ok()) return {Ending::kAnswered, ""};
    if (absl::IsDeadlineExceeded(status) && absl::Now() < deadline) status = absl::OkStatus();
  }
  if (absl::IsDeadlineExceeded(status)) return {Ending::kTimedOut, Bury()};
  // A child that closed its channel is about to exit by itself, and its own exit
  // code says more than our signal.
  (void)process_.Wait(absl::Now() + kFarewell);
  return {Ending::kDied, absl::StrCat(Bury(), "\n", std::string(status.message()))};
}

std::string ChildProcess::Bury() {
  process_.Kill();
  const auto reason = process_.Wait(absl::Now() + kBurial);
  return absl::StrCat(reason.ok() ? reason->ToString() : "still running after SIGKILL", "\n",
                      Tail(log_));
}

}  // namespace mtmc::worker
