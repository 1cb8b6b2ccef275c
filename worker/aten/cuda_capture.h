// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mtmc::worker {

// What the plug-in does differently with CUDA. Internal to it: cuda_capture.cc in
// mtmc_aten_cuda.so, no_cuda.cc in mtmc_aten.so. All throw c10::Error.

// Makes `stream`, a CUstream, the one that all calls run on.
void UseCudaStream(int device, void* stream);

// Frees what the caching allocator keeps; does not throw.
void TrimMemory();

// Memory that is allocated between the two belongs to the graph.
void BeginCapture();
void* EndCapture();

void Replay(void* graph);
void ReleaseGraph(void* graph);

}  // namespace mtmc::worker
