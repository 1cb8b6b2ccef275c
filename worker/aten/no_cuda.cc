// SPDX-License-Identifier: Apache-2.0
#include <c10/util/Exception.h>

#include "worker/aten/cuda_capture.h"

namespace mtmc::worker {

void UseCudaStream(int, void*) { TORCH_CHECK(false, "this plug-in is the one without CUDA"); }

void TrimMemory() {}

void BeginCapture() { TORCH_CHECK(false, "the processor has no graphs"); }

void* EndCapture() { TORCH_CHECK(false, "the processor has no graphs"); }

void Replay(void*) { TORCH_CHECK(false, "the processor has no graphs"); }

void ReleaseGraph(void*) {}

}  // namespace mtmc::worker
