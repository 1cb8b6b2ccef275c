// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/cuda/cuda_api.h"
#include "worker/cuda/occupancy.h"
#include "worker/cuda/peer_mappings.h"
#include "worker/device/device_facts.h"

namespace mtmc::worker {

// A GPU, its primary context (which libtorch shares) and the one stream that
// everything runs on. Current on the thread that created it, which must be the
// one that uses it. Immovable: it owns handles.
class CudaContext {
 public:
  // NOT_FOUND when there is no such device, UNAVAILABLE when it cannot be used.
  static absl::StatusOr<std::shared_ptr<const CudaContext>> Create(int device_index);

  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const CudaApi& api() const { return api_; }

  CUstream stream() const { return stream_; }

  int device_index() const { return device_index_; }

  CUdevice device() const { return device_; }

  CUcontext context() const { return context_; }

  // What is mapped of other processes.
  PeerMappings& peers() const { return *peers_; }

  // Facts that need no measurement.
  absl::StatusOr<DeviceFacts> ReadFacts() const;

  // What one multiprocessor holds.
  MultiprocessorLimits ReadLimits() const;

  // A kernel of a binary, by its name, and where it goes.
  struct NamedKernel {
    CUfunction* function;
    const char* name;
  };

  // Loads a binary of our own and finds its kernels. `module` is the caller's to unload,
  // after an error too unless it is null.
  absl::Status LoadKernels(const std::string& binary, std::initializer_list<NamedKernel> kernels,
                           CUmodule& module) const;

  // Waits for the stream; a fault of any earlier launch shows here.
  MaybeFailure Synchronize() const;

 private:
  CudaContext(const CudaApi& api, int device_index);

  int ReadAttribute(CUdevice_attribute attribute) const;

  const CudaApi& api_;
  const int device_index_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  // Closed before the context goes.
  std::unique_ptr<PeerMappings> peers_;
};

}  // namespace mtmc::worker
