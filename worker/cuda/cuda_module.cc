// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cuda_module.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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
  const auto parts = SplitCubins(binary);
  if (!parts) return CudaFailure(api, CUDA_ERROR_INVALID_IMAGE, "a set of cubins");
  for (const CubinPart& part : *parts) {
    CUmodule module = nullptr;
    const CUresult error = api.cuModuleLoadData(&module, std::string(part.cubin).c_str());
    if (error != CUDA_SUCCESS) return CudaFailure(api, error, "cuModuleLoadData");
    loaded->modules_.push_back(module);
    for (const auto& [name, symbol] : part.symbols) loaded->places_[name] = {module, symbol};
  }
  return loaded;
}

// Null where there is none.
CUfunction CudaModule::FindFunction(const std::string& name) const {
  if (modules_.empty()) return nullptr;
  const auto known = places_.find(name);
  const Place place = known == places_.end() ? Place{modules_.front(), name} : known->second;
  CUfunction function = nullptr;
  const CUresult error =
      context_->api().cuModuleGetFunction(&function, place.module, place.symbol.c_str());
  return error == CUDA_SUCCESS ? function : nullptr;
}

Kernel* CudaModule::Find(std::string_view name) {
  const auto known = found_.find(name);
  if (known != found_.end()) return known->second;
  const std::string text(name);
  CUfunction function = FindFunction(text);
  if (!function) return nullptr;
  int local_bytes = 0;
  context_->api().cuFuncGetAttribute(&local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
  conditions_.set_local_bytes(std::max(conditions_.local_bytes(), local_bytes));
  // Kernels may share one, with what it was told of its shared memory.
  std::unique_ptr<CudaKernel>& kernel = kernels_[function];
  if (!kernel) kernel = std::make_unique<CudaKernel>(function);
  return found_[text] = kernel.get();
}

}  // namespace mtmc::worker
