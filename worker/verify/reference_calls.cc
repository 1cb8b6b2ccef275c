// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/reference_calls.h"

#include "absl/strings/str_cat.h"

namespace mtmc::worker {

ReferenceTrouble TroubleOf(const Reply<v1::ReferenceResponse>& reply) {
  using Ending = Reply<v1::ReferenceResponse>::Ending;
  if (reply.ending == Ending::kTimedOut) {
    return {"REFERENCE_TIMEOUT", "the reference process did not answer in time"};
  }
  if (reply.is_answered()) {
    return {reply.response.failure().reason(), reply.response.failure().message()};
  }
  return {"REFERENCE_DIED", absl::StrCat("the reference process ended: ", reply.detail)};
}

v1::ReferenceRequest MakePrepare(const v1::Workload& workload, uint64_t salt, bool keeps_last) {
  v1::ReferenceRequest request;
  auto& prepare = *request.mutable_prepare();
  prepare.set_workload(workload.seed_index());
  prepare.set_distribution(workload.distribution());
  prepare.set_salt(salt);
  prepare.set_keeps_last(keeps_last);
  return request;
}

v1::ReferenceRequest MakeCompare(int64_t prepared, const v1::RunnerResponse& outputs,
                                 bool is_repeat) {
  v1::ReferenceRequest request;
  auto& compare = *request.mutable_compare();
  *compare.mutable_outputs() = outputs.outputs().outputs();
  compare.set_prepared(prepared);
  compare.set_is_repeat(is_repeat);
  return request;
}

}  // namespace mtmc::worker
