// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/execution_meter.h"

#include <catch2/catch.hpp>

#include "worker/verify/fake_party.h"

namespace mtmc::worker {
namespace {

using FakeRunner = FakeParty<pipe::v1::RunnerRequest, pipe::v1::RunnerResponse>;
using Answer = Reply<pipe::v1::RunnerResponse>;

// Executions take 2 s, a block of samples 7 s, and a profile has kernels of 3 s.
Answer Respond(const pipe::v1::RunnerRequest& request) {
  Answer reply;
  reply.ending = Answer::Ending::kAnswered;
  if (request.has_execute() && !request.execute().under_load()) {
    reply.response.mutable_outputs()->set_seconds(2);
  }
  if (request.has_time()) reply.response.mutable_timed()->set_executed_seconds(7);
  if (request.has_profile()) {
    reply.response.mutable_profile()->add_kernels()->set_seconds(1);
    reply.response.mutable_profile()->add_kernels()->set_seconds(2);
    reply.response.mutable_profile()->set_passes(4);
  }
  return reply;
}

}  // namespace

TEST_CASE("Every execution of a candidate's kernels counts", "[daemon]") {
  FakeRunner runner(Respond);
  ExecutionMeter meter(runner);
  pipe::v1::RunnerRequest execute;
  execute.mutable_execute();
  pipe::v1::RunnerRequest loaded = execute;
  loaded.mutable_execute()->set_under_load(true);
  pipe::v1::RunnerRequest kept = execute;
  kept.mutable_execute()->set_keep_only(true);
  pipe::v1::RunnerRequest time;
  time.mutable_time();
  pipe::v1::RunnerRequest profile;
  profile.mutable_profile();

  meter.Call(execute, absl::Seconds(1));
  CHECK(meter.seconds() == 2);
  meter.Call(loaded, absl::Seconds(1));
  CHECK(meter.seconds() == 4);
  meter.Call(time, absl::Seconds(1));
  CHECK(meter.seconds() == 11);
  meter.Call(profile, absl::Seconds(1));
  CHECK(meter.seconds() == 26);
  meter.Call(kept, absl::Seconds(1));
  CHECK(meter.seconds() == 26);
}

}  // namespace mtmc::worker
