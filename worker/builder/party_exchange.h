// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "worker/builder/child_process.h"
#include "worker/verify/party.h"

namespace mtmc::worker {

// One numbered request to `process`, which must not be null; `process` is null
// afterwards if the process is gone.
template <typename Request, typename Response>
Reply<Response> ExchangeWith(std::unique_ptr<ChildProcess>& process, Request request,
                             int64_t sequence, absl::Time deadline) {
  using Ending = typename Reply<Response>::Ending;
  request.set_sequence(sequence);
  Reply<Response> reply;
  ChildProcess::Answer answer = process->Exchange(request, reply.response, deadline);
  reply.detail = std::move(answer.detail);
  switch (answer.ending) {
    case ChildProcess::Ending::kAnswered:
      reply.ending = Ending::kAnswered;
      if (reply.response.sequence() == sequence) return reply;
      reply.ending = Ending::kDied;
      reply.detail = "answered another request\n" + process->Bury();
      break;
    case ChildProcess::Ending::kDied:
      reply.ending = Ending::kDied;
      break;
    case ChildProcess::Ending::kTimedOut:
      reply.ending = Ending::kTimedOut;
      break;
    case ChildProcess::Ending::kCancelled:
      reply.ending = Ending::kCancelled;
      break;
  }
  process.reset();
  return reply;
}

}  // namespace mtmc::worker
