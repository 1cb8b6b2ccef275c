// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "mtmc/pipe/v1/reference.pb.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "worker/verify/fake_party.h"

// For tests: a runner and a reference process that answer as they are told.
namespace mtmc::worker {

using FakeRunner = FakeParty<pipe::v1::RunnerRequest, pipe::v1::RunnerResponse>;
using FakeReference = FakeParty<pipe::v1::ReferenceRequest, pipe::v1::ReferenceResponse>;
using RunnerReply = Reply<pipe::v1::RunnerResponse>;
using ReferenceReply = Reply<pipe::v1::ReferenceResponse>;

inline RunnerReply Outputs(const pipe::v1::RunnerRequest&) {
  RunnerReply reply{.ending = RunnerReply::Ending::kAnswered};
  reply.response.mutable_outputs()->add_outputs()->set_name("y");
  return reply;
}

// A runner that keeps inputs; `digest` says what of an execution.
inline FakeRunner::Answer Keeping(
    const std::function<uint64_t(const pipe::v1::RunnerRequest&)>& digest) {
  return [digest](const pipe::v1::RunnerRequest& request) {
    RunnerReply reply = Outputs(request);
    reply.response.mutable_outputs()->set_digest(digest(request));
    reply.response.mutable_outputs()->set_kept(request.execute().keep_as());
    return reply;
  };
}

// Answers every request; `is_correct` says what of the workload it is about.
// Handles are 10 plus the seed.
inline FakeReference::Answer Comparing(const std::function<bool(int workload)>& is_correct) {
  return [is_correct](const pipe::v1::ReferenceRequest& request) {
    ReferenceReply reply{.ending = ReferenceReply::Ending::kAnswered};
    if (request.has_prepare()) {
      reply.response.mutable_prepared()->add_inputs()->set_name("x");
      reply.response.mutable_prepared()->set_prepared(10 + request.prepare().workload());
      reply.response.mutable_prepared()->set_oracle("fp64");
    } else {
      const int workload = static_cast<int>(request.compare().prepared()) - 10;
      auto& compared = *reply.response.mutable_compared();
      compared.set_is_correct(is_correct(workload));
      compared.add_satisfied(v1::PRECISION_TF32);
      if (workload == 0) compared.add_satisfied(v1::PRECISION_STRICT);
      compared.set_kernelbench_allclose(true);
      compared.add_errors()->set_tolerance_needed(0.1 * (workload + 1));
      compared.set_message("output y is out of bound");
    }
    return reply;
  };
}

inline constexpr auto kAlways = [](int) { return true; };

inline std::vector<const pipe::v1::ReferenceRequest*> Prepares(const FakeReference& reference) {
  std::vector<const pipe::v1::ReferenceRequest*> found;
  for (const auto& request : reference.requests) {
    if (request.has_prepare()) found.push_back(&request);
  }
  return found;
}

}  // namespace mtmc::worker
