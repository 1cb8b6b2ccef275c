// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/device/library.h"

struct MtmcAtenFunctions;

namespace mtmc::worker {

// ATen operators, executed in place by the libtorch of the host's PyTorch
// through the plug-in. One per process: libtorch's settings are global.
class AtenLibrary final : public Library {
 public:
  struct Options {
    // Path of mtmc_aten.so or mtmc_aten_cuda.so.
    std::string plugin;
    // Folder of libtorch_cpu.so.
    std::string torch_lib_dir;
    // Negative for the processor.
    int cuda_device = -1;
    // CUstream of the device; calls are enqueued there.
    void* cuda_stream = nullptr;
  };

  // UNAVAILABLE when libtorch or the plug-in cannot be opened, or the plug-in is
  // of another build. Takes a second or two with CUDA.
  static absl::StatusOr<std::unique_ptr<AtenLibrary>> Open(const Options& options);

  Outcome<std::vector<std::unique_ptr<LibraryTensor>>> Call(const kernel::LibraryCall& call,
                                                            const FindOperand& find) override;

  bool is_stream_ordered() const override { return is_cuda_; }

  void Trim() override;

  Outcome<std::unique_ptr<Graph>> Capture(const Body& body) override;

  // Such as `2.11.0`.
  std::string torch_version() const;

 private:
  AtenLibrary(const MtmcAtenFunctions& functions, bool is_cuda);

  const MtmcAtenFunctions& functions_;
  const bool is_cuda_;
};

}  // namespace mtmc::worker
