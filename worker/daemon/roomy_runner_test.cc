// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/roomy_runner.h"

#include <catch2/catch.hpp>

#include "worker/verify/fake_party.h"

namespace mtmc::worker {
namespace {

using FakeRunner = FakeParty<pipe::v1::RunnerRequest, pipe::v1::RunnerResponse>;
using FakeReference = FakeParty<pipe::v1::ReferenceRequest, pipe::v1::ReferenceResponse>;

Reply<pipe::v1::RunnerResponse> Failing(v1::Failure::Kind kind) {
  Reply<pipe::v1::RunnerResponse> reply;
  reply.ending = Reply<pipe::v1::RunnerResponse>::Ending::kAnswered;
  reply.response.mutable_failure()->set_kind(kind);
  return reply;
}

Reply<pipe::v1::ReferenceResponse> Released(const pipe::v1::ReferenceRequest& request) {
  CHECK(request.release().all_others());
  Reply<pipe::v1::ReferenceResponse> reply;
  reply.ending = Reply<pipe::v1::ReferenceResponse>::Ending::kAnswered;
  return reply;
}

pipe::v1::RunnerRequest Execute() {
  pipe::v1::RunnerRequest request;
  request.mutable_execute();
  return request;
}

}  // namespace

TEST_CASE("A runner without memory is asked again once the reference has made room", "[daemon]") {
  FakeReference reference(Released);
  FakeRunner runner([&](const pipe::v1::RunnerRequest&) {
    if (reference.requests.empty()) return Failing(v1::Failure::KIND_OUT_OF_MEMORY);
    Reply<pipe::v1::RunnerResponse> reply;
    reply.ending = Reply<pipe::v1::RunnerResponse>::Ending::kAnswered;
    return reply;
  });
  RoomyRunner roomy(runner, reference);

  CHECK_FALSE(roomy.Call(Execute(), absl::Seconds(1)).response.has_failure());
  CHECK(runner.requests.size() == 2);
}

TEST_CASE("What needs more memory than there is fails after one more try", "[daemon]") {
  FakeReference reference(Released);
  FakeRunner runner(
      [](const pipe::v1::RunnerRequest&) { return Failing(v1::Failure::KIND_OUT_OF_MEMORY); });
  RoomyRunner roomy(runner, reference);

  const auto reply = roomy.Call(Execute(), absl::Seconds(1));

  CHECK(reply.response.failure().kind() == v1::Failure::KIND_OUT_OF_MEMORY);
  CHECK(runner.requests.size() == 2);
  CHECK(reference.requests.size() == 1);
}

TEST_CASE("Other failures cost the reference nothing", "[daemon]") {
  FakeReference reference(Released);
  FakeRunner runner(
      [](const pipe::v1::RunnerRequest&) { return Failing(v1::Failure::KIND_TIMEOUT); });
  RoomyRunner roomy(runner, reference);

  roomy.Call(Execute(), absl::Seconds(1));

  CHECK(runner.requests.size() == 1);
  CHECK(reference.requests.empty());
}

}  // namespace mtmc::worker
