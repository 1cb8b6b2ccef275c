// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

namespace grpc {
class Service;
}

namespace mtmc::base {
class Executor;
}

namespace mtmc::metrics {
class Registry;
}

namespace mtmc::gateway {

class MicroCoder;

// A coder and the threads its calls run on. Coders that wait for the network
// have their own, so that they never delay the built-in one.
struct CoderSlot {
  MicroCoder* coder = nullptr;
  base::Executor* executor = nullptr;
};

// mtmc.v1.MicroCodingService over `coders`; requests that name none get the
// first. Everything is borrowed and outlives the service. Counts
// mtmc_coder_requests_total{coder, method, outcome} and
// mtmc_budget_rejections_total{kind}.
std::unique_ptr<grpc::Service> MakeGatewayService(const std::vector<CoderSlot>& coders,
                                                  metrics::Registry& registry);

}  // namespace mtmc::gateway
