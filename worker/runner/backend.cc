// SPDX-License-Identifier: Apache-2.0
#include "worker/runner/backend.h"

#include <utility>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "worker/opencl/opencl_compiler.h"
#include "worker/opencl/opencl_device.h"

namespace mtmc::worker {
namespace {

absl::StatusOr<Backend> OpenOpenClBackend(const BackendOptions& options) {
  MTMC_ASSIGN_OR_RETURN(auto context, OpenClContext::Create(options.device_index));
  auto device = std::make_unique<OpenClDevice>(context);
  Backend backend;
  backend.facts = device->facts();
  backend.counters = "OpenCL has no counters";
  backend.device = std::move(device);
  return backend;
}

}  // namespace

absl::StatusOr<Backend> OpenBackend(const BackendOptions& options) {
  return OpenOpenClBackend(options);
}

}  // namespace mtmc::worker
