// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cuda_module.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/cuda/cubin_scan.h"
#include "worker/cuda/cubin_set.h"

namespace mtmc::worker {

MaybeFailure CudaKernel::Launch(const CudaContext& context, const LaunchCommand& command) {
  const CudaApi& api = context.api();
  if (command.shared_bytes > shared_limit_) {
    const CUresult error =
        api.cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               static_cast<int>(command.shared_bytes));
    if (error != CUDA_SUCCESS) {
      return CudaFailure(
          api, error,
          absl::StrCat("a launch with ", command.shared_bytes, " bytes of shared memory"));
    }
    shared_limit_ = command.shared_bytes;
  }
  std::vector<CUdeviceptr> pointers(command.arguments.size());
  std::vector<void*> values(command.arguments.size());
  for (size_t i = 0; i < command.arguments.size(); ++i) {
    if (const auto* buffer = std::get_if<const Buffer*>(&command.arguments[i])) {
      pointers[i] = reinterpret_cast<CUdeviceptr>((*buffer)->address());
      values[i] = &pointers[i];
    } else {
      // The driver copies the value before it returns.
      values[i] =
          const_cast<std::byte*>(std::get<ScalarArgument>(command.arguments[i]).value.data());
    }
  }
  const auto& grid = command.grid;
  const auto& block = command.block;
  const CUresult error = api.cuLaunchKernel(
      function_, static_cast<unsigned>(grid[0]), static_cast<unsigned>(grid[1]),
      static_cast<unsigned>(grid[2]), static_cast<unsigned>(block[0]),
      static_cast<unsigned>(block[1]), static_cast<unsigned>(block[2]),
      static_cast<unsigned>(command.shared_bytes), context.stream(), values.data(), nullptr);
  if (error != CUDA_SUCCESS) {
    return CudaFailure(api, error,
                       absl::StrCat("a launch with grid (", grid[0], ", ", grid[1], ", ", grid[2],
                                    "), block (", block[0], ", ", block[1], ", ", block[2],
                                    ") and ", command.shared_bytes, " bytes of shared memory"));
  }
  return std::nullopt;
}

CudaModule::CudaModule(std::shared_ptr<const CudaContext> context, CudaConditions& conditions)
    : context_(std::move(context)), conditions_(conditions) {}

CudaModule::~CudaModule() {
  for (CUmodule module : modules_) context_->api().cuModuleUnload(module);
}

Outcome<std::unique_ptr<CudaModule>> CudaModule::Load(std::shared_ptr<const CudaContext> context,
                                                      CudaConditions& conditions,
                                                      std::string_view binary) {
  std::unique_ptr<CudaModule> loaded(new CudaModule(std::move(context), conditions));
  const CudaApi& api = loaded->context_->api();
  const auto cubins = SplitCubins(binary);
  if (!cubins) return CudaFailure(api, CUDA_ERROR_INVALID_IMAGE, "a set of cubins");
  for (const std::string_view cubin : *cubins) {
    CUmodule module = nullptr;
    const CUresult error = api.cuModuleLoadData(&module, std::string(cubin).c_str());
    if (error != CUDA_SUCCESS) return CudaFailure(api, error, "cuModuleLoadData");
    loaded->modules_.push_back(module);
    if (cubins->size() == 1) break;
    const auto contents = ReadCubin(cubin);
    if (!contents) return CudaFailure(api, CUDA_ERROR_INVALID_IMAGE, "a cubin");
    for (const CubinKernel& kernel : contents->kernels) loaded->owners_[kernel.name] = module;
  }
  return loaded;
}

// Null where there is none.
CUfunction CudaModule::FindFunction(const std::string& name) const {
  if (modules_.empty()) return nullptr;
  const auto owner = owners_.find(name);
  CUmodule module = owner == owners_.end() ? modules_.front() : owner->second;
  CUfunction function = nullptr;
  const CUresult error = context_->api().cuModuleGetFunction(&function, module, name.c_str());
  return error == CUDA_SUCCESS ? function : nullptr;
}

Kernel* CudaModule::Find(std::string_view name) {
  auto known = kernels_.find(name);
  if (known != kernels_.end()) return known->second.get();
  const std::string text(name);
  CUfunction function = FindFunction(text);
  if (!function) return nullptr;
  int local_bytes = 0;
  context_->api().cuFuncGetAttribute(&local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
  conditions_.set_local_bytes(std::max(conditions_.local_bytes(), local_bytes));
  return (kernels_[text] = std::make_unique<CudaKernel>(function)).get();
}

}  // namespace mtmc::worker
