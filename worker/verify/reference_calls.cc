// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/reference_calls.h"

#include <random>

#include "absl/strings/str_cat.h"

namespace mtmc::worker {
namespace {

// Of inputs that no program has seen; no verified workload has it.
constexpr int kFreshSeed = 1000;

}  // namespace

uint64_t DrawSalt() {
  std::random_device device;
  const uint64_t salt = (uint64_t{device()} << 32) | device();
  return salt == 0 ? 1 : salt;
}

ReferenceTrouble TroubleOf(const Reply<pipe::v1::ReferenceResponse>& reply) {
  using Ending = Reply<pipe::v1::ReferenceResponse>::Ending;
  if (reply.ending == Ending::kTimedOut) {
    return {"REFERENCE_TIMEOUT", "the reference process did not answer in time"};
  }
  if (reply.is_answered()) {
    return {reply.response.failure().reason(), reply.response.failure().message()};
  }
  return {"REFERENCE_DIED", absl::StrCat("the reference process ended: ", reply.detail)};
}

pipe::v1::ReferenceRequest MakePrepare(const v1::Workload& workload, uint64_t salt,
                                       bool keeps_last) {
  pipe::v1::ReferenceRequest request;
  auto& prepare = *request.mutable_prepare();
  prepare.set_workload(workload.seed_index());
  prepare.set_distribution(workload.distribution());
  prepare.set_salt(salt);
  prepare.set_keeps_last(keeps_last);
  return request;
}

v1::Workload FreshWorkload() {
  v1::Workload workload;
  workload.set_seed_index(kFreshSeed);
  return workload;
}

pipe::v1::ReferenceRequest MakePrepareFresh() {
  return MakePrepare(FreshWorkload(), DrawSalt(), /*keeps_last=*/false);
}

pipe::v1::ReferenceRequest MakeRelease(int64_t prepared) {
  pipe::v1::ReferenceRequest request;
  request.mutable_release()->set_prepared(prepared);
  return request;
}

pipe::v1::ReferenceRequest MakeCompare(int64_t prepared, const pipe::v1::RunnerResponse& outputs,
                                       bool is_repeat) {
  pipe::v1::ReferenceRequest request;
  auto& compare = *request.mutable_compare();
  *compare.mutable_outputs() = outputs.outputs().outputs();
  compare.set_prepared(prepared);
  compare.set_is_repeat(is_repeat);
  return request;
}

}  // namespace mtmc::worker
