// SPDX-License-Identifier: Apache-2.0
#include "worker/builder/child_main.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/message_channel.h"
#include "common/base/status_macros.h"
#include "common/base/unique_fd.h"
#include "common/daemon/exit_code.h"
#include "worker/builder/child_process.h"

namespace mtmc::worker {
namespace {

// The daemon reads whenever it waits for an answer; it is gone if it does not.
constexpr absl::Duration kSendTimeout = absl::Seconds(60);

}  // namespace

absl::Status ServeChannel(const AnswerFunction& answer) {
  auto channel = base::MessageChannel::OverFds(base::UniqueFd(kChannelFd), base::UniqueFd(),
                                               {.max_message_bytes = uint32_t{256} << 20});
  while (true) {
    auto request = channel.Receive(absl::InfiniteFuture());
    if (absl::IsUnavailable(request.status())) return absl::OkStatus();
    if (!request.ok()) return request.status();
    MTMC_ASSIGN_OR_RETURN(const std::string response, answer(*request));
    MTMC_RETURN_IF_ERROR(channel.Send(response, absl::Now() + kSendTimeout));
  }
}

int ToExitCode(const absl::Status& status) {
  if (!status.ok()) std::cerr << "error: " << status.message() << std::endl;
  return daemon::ExitCodeOf(status);
}

}  // namespace mtmc::worker
