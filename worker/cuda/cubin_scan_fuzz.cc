// SPDX-License-Identifier: Apache-2.0

// Any bytes may be read as a cubin, and as PTX.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "worker/cuda/cubin_scan.h"
#include "worker/cuda/ptx_scan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  mtmc::worker::ScanPtx(bytes);
  mtmc::worker::CheckCubin(bytes, bytes, "extern \"C\" __global__ void k(float* y, int a) {}");
  return 0;
}
