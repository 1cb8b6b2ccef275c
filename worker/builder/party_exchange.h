// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "worker/builder/child_process.h"
#include "worker/verify/party.h"

namespace mtmc::worker {

template <typename Response>
Reply<Response> ToReply(ChildProcess::Answer answer) {
  using Ending = typename Reply<Response>::Ending;
  Reply<Response> reply;
  reply.detail = std::move(answer.detail);
  switch (answer.ending) {
    case ChildProcess::Ending::kAnswered:
      reply.ending = Ending::kAnswered;
      break;
    case ChildProcess::Ending::kDied:
      reply.ending = Ending::kDied;
      break;
    case ChildProcess::Ending::kKilled:
      reply.ending = Ending::kKilled;
      break;
    case ChildProcess::Ending::kOutOfMemory:
      reply.ending = Ending::kOutOfMemory;
      break;
    case ChildProcess::Ending::kTimedOut:
      reply.ending = Ending::kTimedOut;
      break;
    case ChildProcess::Ending::kCancelled:
      reply.ending = Ending::kCancelled;
      break;
  }
  return reply;
}

// The answer to the request `sequence`, which was sent before. `process` must not
// be null, and is null afterwards if the process is gone.
template <typename Response>
Reply<Response> ReceiveFrom(std::unique_ptr<ChildProcess>& process, int64_t sequence,
                            absl::Time deadline) {
  Response response;
  auto reply = ToReply<Response>(process->Receive(response, deadline));
  if (reply.is_answered() && response.sequence() != sequence) {
    reply.ending = Reply<Response>::Ending::kDied;
    reply.detail = "answered another request\n" + process->Bury();
  }
  reply.response = std::move(response);
  reply.process = process->number();
  if (!reply.is_answered()) process.reset();
  return reply;
}

// One numbered request to `process`, as ReceiveFrom.
template <typename Request, typename Response>
Reply<Response> ExchangeWith(std::unique_ptr<ChildProcess>& process, Request request,
                             int64_t sequence, absl::Time deadline) {
  request.set_sequence(sequence);
  auto sent = ToReply<Response>(process->Send(request, deadline));
  if (sent.is_answered()) return ReceiveFrom<Response>(process, sequence, deadline);
  process.reset();
  return sent;
}

}  // namespace mtmc::worker
