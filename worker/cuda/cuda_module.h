// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "worker/cuda/cuda_conditions.h"
#include "worker/cuda/cuda_context.h"
#include "worker/device/device.h"

namespace mtmc::worker {

// A kernel of a candidate.
class CudaKernel final : public Kernel {
 public:
  explicit CudaKernel(CUfunction function) : function_(function) {}

  // Enqueued on the context's stream. REQUIRES: `command` names this kernel.
  MaybeFailure Launch(const CudaContext& context, const LaunchCommand& command);

 private:
  // What a kernel gets without asking; beyond, an attribute must be set first.
  static constexpr int64_t kPlainSharedBytes = int64_t{48} << 10;

  const CUfunction function_;
  // Largest dynamic shared memory that was asked for so far.
  int64_t shared_limit_ = kPlainSharedBytes;
};

// A candidate's binary (cubin_set.h). Tells `conditions` how much local memory its kernels have.
class CudaModule final : public Module {
 public:
  // Borrows `conditions`.
  static Outcome<std::unique_ptr<CudaModule>> Load(std::shared_ptr<const CudaContext> context,
                                                   CudaConditions& conditions,
                                                   std::string_view binary);
  ~CudaModule() override;
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  Kernel* Find(std::string_view name) override;

 private:
  struct Place {
    CUmodule module;
    std::string symbol;
  };

  CudaModule(std::shared_ptr<const CudaContext> context, CudaConditions& conditions);

  CUfunction FindFunction(const std::string& name) const;

  const std::shared_ptr<const CudaContext> context_;
  CudaConditions& conditions_;
  // One for each cubin.
  std::vector<CUmodule> modules_;
  // Of kernels, by their names, where the binary says so; others are in the first module.
  std::map<std::string, Place, std::less<>> places_;
  std::map<CUfunction, std::unique_ptr<CudaKernel>> kernels_;
  // Those that were asked for, by their names.
  std::map<std::string, CudaKernel*, std::less<>> found_;
};

}  // namespace mtmc::worker
