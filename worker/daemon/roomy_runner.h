// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/clock.h"
#include "mtmc/pipe/v1/reference.pb.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "worker/verify/party.h"

namespace mtmc::worker {

// A runner that shares its device with a reference process. Where a request finds too
// little memory, the reference gives up what it only remembers, and the request is
// repeated: a program that needs more than its reference was expected to is not out of
// memory yet. Thread-compatible.
class RoomyRunner final : public RunnerParty {
 public:
  // Borrows both.
  RoomyRunner(RunnerParty& runner, ReferenceParty& reference)
      : runner_(runner), reference_(reference) {}

  Reply<pipe::v1::RunnerResponse> Call(const pipe::v1::RunnerRequest& request,
                                       absl::Duration timeout) override {
    const absl::Time deadline = absl::Now() + timeout;
    auto reply = runner_.Call(request, timeout);
    if (!reply.is_answered() ||
        reply.response.failure().kind() != v1::Failure::KIND_OUT_OF_MEMORY ||
        reply.response.is_context_lost()) {
      return reply;
    }
    pipe::v1::ReferenceRequest release;
    release.mutable_release()->set_all_others(true);
    const auto released = reference_.Call(release, deadline - absl::Now());
    if (!released.is_answered() || released.response.has_failure()) return reply;
    return runner_.Call(request, deadline - absl::Now());
  }

 private:
  RunnerParty& runner_;
  ReferenceParty& reference_;
};

}  // namespace mtmc::worker
