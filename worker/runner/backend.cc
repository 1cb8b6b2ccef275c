// SPDX-License-Identifier: Apache-2.0
#include "worker/runner/backend.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "worker/aten/aten_library.h"
#include "worker/cuda/cuda_device.h"
#include "worker/cuda/nvml_health.h"
#include "worker/cuda/nvrtc_compiler.h"
#include "worker/opencl/opencl_compiler.h"
#include "worker/opencl/opencl_device.h"
#include "worker/runner/rates.h"

namespace mtmc::worker {
namespace {

// Null when library calls are off or cannot be had.
std::unique_ptr<Library> OpenLibrary(const BackendOptions& options, int cuda_device,
                                     void* cuda_stream) {
  if (options.aten_plugin.empty()) return nullptr;
  auto library = AtenLibrary::Open({.plugin = options.aten_plugin,
                                    .torch_lib_dir = options.tools.torch_lib_dir,
                                    .cuda_device = cuda_device,
                                    .cuda_stream = cuda_stream});
  if (library.ok()) return *std::move(library);
  base::Log(base::LogLevel::kWarning, "there are no library calls", {{"reason", library.status()}});
  return nullptr;
}

// OpenCL does not tell what its devices go through.
std::vector<DeviceEvent> ReadNoEvents() { return {}; }

Canary::ReadEvents EventsOf(const std::string& uuid) {
  std::shared_ptr<NvmlHealth> health = NvmlHealth::Find(uuid);
  if (!health) return ReadNoEvents;
  return [health] { return health->TakeEvents(); };
}

void AddRates(const BackendOptions& options, Compiler& compiler, Backend& backend) {
  if (!options.measures_rates) return;
  const Rates rates = MeasureRates(*backend.device, backend.library.get(), compiler);
  backend.facts.memory_bandwidth_bytes_per_second = rates.memory_bandwidth;
  backend.facts.fp32_flops_per_second = rates.fp32;
  backend.facts.tf32_flops_per_second = rates.tf32;
}

absl::StatusOr<Backend> OpenOpenClBackend(const BackendOptions& options) {
  MTMC_ASSIGN_OR_RETURN(auto context, OpenClContext::Create(options.device_index));
  auto device = std::make_unique<OpenClDevice>(context);
  Backend backend;
  // Only memory that has addresses can be a tensor's.
  if (context->is_host()) backend.library = OpenLibrary(options, -1, nullptr);
  backend.facts = device->facts();
  backend.facts.has_library_calls = backend.library != nullptr;
  device->set_facts(backend.facts);
  backend.device = std::move(device);
  backend.counters = "OpenCL has no counters";
  OpenClCompiler compiler(context);
  MTMC_ASSIGN_OR_RETURN(backend.canary, Canary::Create(*backend.device, compiler, ReadNoEvents));
  AddRates(options, compiler, backend);
  // The first one compiles its kernel, which a sealed process could not.
  if (const MaybeFailure failure = backend.device->Scrub()) {
    return absl::InternalError(absl::StrCat("the scrub: ", failure->message));
  }
  if (const MaybeFailure failure = backend.device->Synchronize()) {
    return absl::InternalError(absl::StrCat("the scrub: ", failure->message));
  }
  return backend;
}

// The driver lets only administrators read counters unless it is told otherwise.
std::string DescribeCounters() {
  auto parameters = base::ReadFile("/proc/driver/nvidia/params");
  const bool is_restricted =
      parameters.ok() && parameters->find("RmProfilingAdminOnly: 1") != std::string::npos;
  if (!is_restricted || geteuid() == 0) return "available";
  return "forbidden: load the driver's module with NVreg_RestrictProfilingToAdminUsers=0, or give "
         "the worker CAP_SYS_ADMIN";
}

absl::StatusOr<Backend> OpenCudaBackend(const BackendOptions& options) {
  MTMC_ASSIGN_OR_RETURN(auto context, CudaContext::Create(options.device_index));
  MTMC_ASSIGN_OR_RETURN(const DeviceFacts facts, context->ReadFacts());
  MTMC_ASSIGN_OR_RETURN(auto compiler,
                        NvrtcCompiler::Create({.library = options.tools.nvrtc,
                                               .include_dir = options.tools.cuda_include_dir,
                                               .compute_capability = facts.compute_capability}));
  const CompileResult kernels = compiler->Compile(CudaDevice::Source(), {});
  if (kernels.failure) {
    return absl::InternalError(absl::StrCat(kernels.failure->message, "\n", kernels.log));
  }
  MTMC_ASSIGN_OR_RETURN(auto device, CudaDevice::Create(context, {.kernels = kernels.binary,
                                                                  .cupti = options.tools.cupti}));
  Backend backend;
  backend.library = OpenLibrary(options, options.device_index, context->stream());
  backend.facts = device->facts();
  backend.facts.has_library_calls = backend.library != nullptr;
  backend.facts.toolchain_version = compiler->version();
  device->set_facts(backend.facts);
  backend.device = std::move(device);
  backend.counters = DescribeCounters();
  MTMC_ASSIGN_OR_RETURN(backend.canary,
                        Canary::Create(*backend.device, *compiler, EventsOf(backend.facts.uuid)));
  AddRates(options, *compiler, backend);
  return backend;
}

}  // namespace

absl::StatusOr<Backend> OpenBackend(const BackendOptions& options) {
  switch (options.dialect) {
    case kernel::Dialect::kOpenCl:
      return OpenOpenClBackend(options);
    case kernel::Dialect::kCuda:
      return OpenCudaBackend(options);
    case kernel::Dialect::kTriton:
      break;
  }
  return absl::UnimplementedError("triton programs are not run by this worker");
}

}  // namespace mtmc::worker
