// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "worker/cuda/cuda_api.h"
#include "worker/device/failure.h"

namespace mtmc::worker {

// Memory of other processes that is mapped into this one. To map and to unmap takes a
// millisecond, and the hundred tensors of a model lie in one allocation: each is mapped once,
// until all are closed. Who shared an allocation may free it and share another one under the same
// handle, so close before that process goes on. Thread-compatible.
class PeerMappings {
 public:
  // Borrows `api`.
  explicit PeerMappings(const CudaApi& api) : api_(api) {}

  // CloseAll.
  ~PeerMappings();
  PeerMappings(const PeerMappings&) = delete;
  PeerMappings& operator=(const PeerMappings&) = delete;

  // The first address of the allocation with the bytes of a CUipcMemHandle; kCheck for anything
  // else.
  Outcome<CUdeviceptr> Open(const std::string& handle);

  // Unmaps all. REQUIRES: nothing that reads them is under way.
  MaybeFailure CloseAll();

 private:
  struct Mapping {
    std::string handle;
    CUdeviceptr address = 0;
  };

  const CudaApi& api_;
  std::vector<Mapping> mappings_;
};

}  // namespace mtmc::worker
