// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "policy/rules/interface.h"

namespace grpc {
class Service;
}

namespace mtmc::metrics {
class Registry;
}

namespace mtmc::policy {

// The gRPC face of some policies: `mtmc.v1.PolicyService`. Converts, draws with
// the request's seed and counts; everything else is the policy's.
//
// `policies` are listed and asked by name; the first is the default. They and
// the registry are borrowed and outlive the service. Counts
// `mtmc_policy_requests_total{policy, outcome}` by `ok` or the error's code, and
// `mtmc_policy_inference_seconds{policy}` from the request to its distribution. What
// was decided is counted by the coordinator, which records it.
//
// REQUIRES: policies is not empty.
std::unique_ptr<grpc::Service> MakePolicyService(std::vector<Policy*> policies,
                                                 metrics::Registry& registry);

}  // namespace mtmc::policy
