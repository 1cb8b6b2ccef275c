// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/inspection.h"

#include <catch2/catch.hpp>

#include "common/testing/fake_clock.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "mtmc/pipe/v1/reference.pb.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "worker/daemon/evaluation_run.h"
#include "worker/daemon/evaluator.h"
#include "worker/daemon/session.h"
#include "worker/verify/fake_party.h"

namespace mtmc::worker {
namespace {

template <typename Request, typename Response>
class Absent : public FakeParty<Request, Response> {
 public:
  Absent()
      : FakeParty<Request, Response>([](const Request&) {
          return Reply<Response>{.ending = Reply<Response>::Ending::kUnavailable};
        }) {}
};

// A worker of one isolation level whose coordinator has no sources.
struct Bench {
  Absent<pipe::v1::BuilderRequest, pipe::v1::BuilderResponse> builder;
  Absent<pipe::v1::RunnerRequest, pipe::v1::RunnerResponse> runner;
  Absent<pipe::v1::ReferenceRequest, pipe::v1::ReferenceResponse> reference;
  testing::FakeClock clock;
  CounterRule counters;
  ProcessOffsets offsets;
  int fetches = 0;
  EvaluationContext context;

  explicit Bench(v1::Isolation level)
      : context{.parties = {builder, runner, reference},
                .fetch =
                    [this](const v1::Digest&) {
                      ++fetches;
                      return absl::NotFoundError("no source");
                    },
                .clock = clock,
                .options = {.isolation_level = level},
                .counter_rule = counters,
                .offsets = offsets} {}
};

}  // namespace

TEST_CASE("An inspection that asks for more isolation is refused before it is fetched",
          "[worker]") {
  Bench bench(v1::ISOLATION_RESTRICTED);
  v1::InspectionRequest request;
  request.set_min_isolation(v1::ISOLATION_CONFINED);

  const v1::LeaseResult result = InspectProblem(bench.context, request);

  CHECK(result.worker_failure().reason() == "ISOLATION_TOO_LOW");
  CHECK(result.worker_failure().message() ==
        "the job asks for ISOLATION_CONFINED, this worker has ISOLATION_RESTRICTED");
  CHECK(bench.fetches == 0);
}

TEST_CASE("A problem is loaded again by another process when inputs took one down", "[worker]") {
  using ReferenceReply = Reply<pipe::v1::ReferenceResponse>;
  int deaths = 3;
  FakeParty<pipe::v1::ReferenceRequest, pipe::v1::ReferenceResponse> reference(
      [&](const pipe::v1::ReferenceRequest&) {
        return ReferenceReply{.ending = deaths-- > 0 ? ReferenceReply::Ending::kDied
                                                     : ReferenceReply::Ending::kAnswered};
      });
  auto load = [&] { return LoadProblem(reference, "x.py", {}, "cpu", {}, absl::Seconds(1)); };

  CHECK(load().ok());
  CHECK(reference.requests.size() == 4);
  deaths = 1000;
  CHECK(absl::IsUnavailable(load().status()));
  CHECK(reference.requests.size() == 8);
}

TEST_CASE("Where memory ran out, work is tried once more with all of it", "[worker]") {
  using ReferenceReply = Reply<pipe::v1::ReferenceResponse>;
  Absent<pipe::v1::BuilderRequest, pipe::v1::BuilderResponse> builder;
  Absent<pipe::v1::RunnerRequest, pipe::v1::RunnerResponse> runner;
  int given_back = 0;
  int least_given_back = 1;
  FakeParty<pipe::v1::ReferenceRequest, pipe::v1::ReferenceResponse> reference(
      [&](const pipe::v1::ReferenceRequest&) {
        ReferenceReply reply{.ending = ReferenceReply::Ending::kAnswered};
        reply.response.mutable_failure()->set_reason(
            given_back < least_given_back ? "INPUTS_TOO_LARGE" : "MODEL_RAISED");
        return reply;
      });
  testing::FakeClock clock;
  Evaluator evaluator({builder, runner, reference}, [](const v1::Digest&) { return "x.py"; }, clock,
                      {.give_memory_back = [&] { ++given_back; }});
  auto reason = [&] { return evaluator.Inspect({}, [](v1::Stage) {}).problem_failure().reason(); };

  CHECK(reason() == "MODEL_RAISED");
  CHECK(given_back == 1);
  CHECK(reason() == "MODEL_RAISED");
  CHECK(given_back == 1);
  least_given_back = 100;
  CHECK(reason() == "INPUTS_TOO_LARGE");
  CHECK(given_back == 2);
}

TEST_CASE("What fails on a full disk is the worker's failure and nobody else's", "[worker]") {
  using ReferenceReply = Reply<pipe::v1::ReferenceResponse>;
  Absent<pipe::v1::BuilderRequest, pipe::v1::BuilderResponse> builder;
  Absent<pipe::v1::RunnerRequest, pipe::v1::RunnerResponse> runner;
  FakeParty<pipe::v1::ReferenceRequest, pipe::v1::ReferenceResponse> reference(
      [](const pipe::v1::ReferenceRequest&) {
        return ReferenceReply{.ending = ReferenceReply::Ending::kDied};
      });
  testing::FakeClock clock;
  absl::Status room = absl::ResourceExhaustedError("no space left on device");
  Evaluator evaluator({builder, runner, reference}, [](const v1::Digest&) { return "x.py"; }, clock,
                      {.check_room = [&] { return room; }});
  auto inspect = [&] { return evaluator.Inspect({}, [](v1::Stage) {}); };

  CHECK(inspect().worker_failure().reason() == "DISK_FULL");
  CHECK(inspect().worker_failure().message() == "no space left on device");
  room = absl::OkStatus();
  CHECK(inspect().problem_failure().reason() == "REFERENCE_DIED");
}

TEST_CASE("An inspection is begun with the isolation that it asks for", "[worker]") {
  Bench bench(v1::ISOLATION_CONFINED);
  v1::InspectionRequest request;
  request.set_min_isolation(v1::ISOLATION_CONFINED);

  const v1::LeaseResult result = InspectProblem(bench.context, request);

  CHECK(result.worker_failure().reason() == "ARTIFACT_UNAVAILABLE");
  CHECK(bench.fetches == 1);
}

TEST_CASE("An evaluation is refused with the same words as an inspection", "[worker]") {
  Bench bench(v1::ISOLATION_PROCESS);
  v1::EvaluationRequest request;
  request.mutable_options()->set_min_isolation(v1::ISOLATION_RESTRICTED);
  v1::InspectionRequest inspection;
  inspection.set_min_isolation(v1::ISOLATION_RESTRICTED);

  const v1::LeaseResult result = EvaluationRun(bench.context, request, [](v1::Stage) {}).Execute();

  CHECK(result.worker_failure().reason() == "ISOLATION_TOO_LOW");
  CHECK(result.worker_failure().message() ==
        InspectProblem(bench.context, inspection).worker_failure().message());
  CHECK(bench.fetches == 0);
}

}  // namespace mtmc::worker
