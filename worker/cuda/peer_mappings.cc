// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/peer_mappings.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace mtmc::worker {

PeerMappings::~PeerMappings() { CloseAll(); }

Outcome<CUdeviceptr> PeerMappings::Open(const std::string& handle) {
  for (const Mapping& mapping : mappings_) {
    if (mapping.handle == handle) return mapping.address;
  }
  CUipcMemHandle opened{};
  if (handle.size() != sizeof opened) {
    return Failure{.kind = Failure::Kind::kCheck,
                   .message = absl::StrCat("a memory handle has ", handle.size(), " bytes, not ",
                                           sizeof opened)};
  }
  std::memcpy(&opened, handle.data(), sizeof opened);
  CUdeviceptr address = 0;
  const CUresult error =
      api_.cuIpcOpenMemHandle(&address, opened, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  if (error != CUDA_SUCCESS) return CudaFailure(api_, error, "cuIpcOpenMemHandle");
  mappings_.push_back({.handle = handle, .address = address});
  return address;
}

MaybeFailure PeerMappings::CloseAll() {
  MaybeFailure failure;
  for (const Mapping& mapping : mappings_) {
    const CUresult error = api_.cuIpcCloseMemHandle(mapping.address);
    if (error != CUDA_SUCCESS && !failure) {
      failure = CudaFailure(api_, error, "cuIpcCloseMemHandle");
    }
  }
  mappings_.clear();
  return failure;
}

}  // namespace mtmc::worker
