// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/verifier.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "mtmc/v1/reference.pb.h"
#include "mtmc/v1/runner.pb.h"

namespace mtmc::worker {
namespace {

// A child whose answers a test writes down as a function.
template <typename Request, typename Response>
class FakeParty : public Party<Request, Response> {
 public:
  using Answer = std::function<Reply<Response>(const Request&)>;

  explicit FakeParty(Answer answer) : answer_(std::move(answer)) {}

  Reply<Response> Call(const Request& request, absl::Duration) override {
    requests.push_back(request);
    return answer_(request);
  }

  std::vector<Request> requests;

 private:
  const Answer answer_;
};

using FakeRunner = FakeParty<v1::RunnerRequest, v1::RunnerResponse>;
using FakeReference = FakeParty<v1::ReferenceRequest, v1::ReferenceResponse>;
using RunnerReply = Reply<v1::RunnerResponse>;
using ReferenceReply = Reply<v1::ReferenceResponse>;

RunnerReply Outputs(const v1::RunnerRequest&) {
  RunnerReply reply{.ending = RunnerReply::Ending::kAnswered};
  reply.response.mutable_outputs()->add_outputs()->set_name("y");
  return reply;
}

// Answers every request; `is_correct` says what of the workload prepared last.
FakeReference::Answer Comparing(const std::function<bool(int workload)>& is_correct) {
  auto workload = std::make_shared<int>(0);
  return [workload, is_correct](const v1::ReferenceRequest& request) {
    ReferenceReply reply{.ending = ReferenceReply::Ending::kAnswered};
    if (request.has_prepare()) {
      *workload = request.prepare().workload();
      reply.response.mutable_prepared()->add_inputs()->set_name("x");
    } else {
      auto& compared = *reply.response.mutable_compared();
      compared.set_is_correct(is_correct(*workload));
      compared.add_satisfied(v1::PRECISION_TF32);
      if (*workload == 0) compared.add_satisfied(v1::PRECISION_STRICT);
      compared.set_kernelbench_allclose(true);
      compared.add_errors()->set_tolerance_needed(0.1 * (*workload + 1));
      compared.set_message("output y is out of bound");
    }
    return reply;
  };
}

TEST_CASE("Verifier leaves both sides on the public workload", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference(Comparing([](int) { return true; }));

  const Verification result = Verifier(runner, reference).Verify({.hidden_seeds = 2});

  CHECK(result.verdict == v1::Evaluation::VERDICT_CORRECT);
  std::vector<int> prepared;
  for (const auto& request : reference.requests) {
    if (request.has_prepare()) prepared.push_back(request.prepare().workload());
  }
  CHECK(prepared == std::vector<int>{2, 1, 0});
}

TEST_CASE("Verifier keeps the classes that hold on every workload", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference(Comparing([](int) { return true; }));

  const Verification result = Verifier(runner, reference).Verify({.hidden_seeds = 1});

  CHECK(result.satisfied == std::vector<v1::Precision>{v1::PRECISION_TF32});
  CHECK(result.errors.at(0).tolerance_needed() == 0.2);
}

TEST_CASE("Verifier fails a program that is wrong on one hidden workload", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference(Comparing([](int workload) { return workload != 1; }));

  const Verification result = Verifier(runner, reference).Verify({.hidden_seeds = 2});

  REQUIRE(result.failure);
  CHECK(result.verdict == v1::Evaluation::VERDICT_WRONG);
  CHECK(result.failure->kind() == v1::Failure::KIND_WRONG_RESULT);
}

TEST_CASE("Verifier poisons with another byte at each execution", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference(Comparing([](int) { return true; }));

  Verifier(runner, reference).Verify({.hidden_seeds = 1});

  REQUIRE(runner.requests.size() == 2);
  CHECK(runner.requests[0].execute().poison() != runner.requests[1].execute().poison());
}

TEST_CASE("Verifier blames the candidate when the runner dies", "[verify]") {
  FakeRunner runner([](const auto&) {
    return RunnerReply{.ending = RunnerReply::Ending::kDied, .detail = "signal 11"};
  });
  FakeReference reference(Comparing([](int) { return true; }));

  const Verification result = Verifier(runner, reference).Verify({});

  REQUIRE(result.failure);
  CHECK(result.failure->kind() == v1::Failure::KIND_CRASH);
  CHECK(result.verdict == v1::Evaluation::VERDICT_UNSAFE);
}

TEST_CASE("Verifier does not blame the candidate when the reference dies", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference(
      [](const auto&) { return ReferenceReply{.ending = ReferenceReply::Ending::kDied}; });
  Verifier verifier(runner, reference);

  const Verification result = verifier.Verify({});

  CHECK_FALSE(result.failure);
  REQUIRE(verifier.trouble());
  CHECK(verifier.trouble()->reason == "REFERENCE_DIED");
}

TEST_CASE("Verifier says when a program became wrong while it was timed", "[verify]") {
  FakeRunner runner(Outputs);
  bool is_correct = true;
  FakeReference reference(Comparing([&](int) { return is_correct; }));
  Verifier verifier(runner, reference);
  verifier.Verify({.hidden_seeds = 0});
  is_correct = false;

  const Verification result = verifier.Recheck(absl::Seconds(1));

  REQUIRE(result.failure);
  CHECK(result.failure->stage() == v1::STAGE_MEASURE);
  CHECK(result.failure->message().find("wrong after timing") != std::string::npos);
}

}  // namespace
}  // namespace mtmc::worker
