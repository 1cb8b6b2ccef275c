// SPDX-License-Identifier: Apache-2.0
#include "worker/aten/cuda_capture.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <exception>
#include <memory>
#include <utility>

namespace mtmc::worker {
namespace {

// Between begin and end.
std::unique_ptr<at::cuda::CUDAGraph>& Capturing() {
  static auto& graph = *new std::unique_ptr<at::cuda::CUDAGraph>;
  return graph;
}

}  // namespace

void UseCudaStream(int device, void* stream) {
  const auto index = static_cast<c10::DeviceIndex>(device);
  c10::cuda::set_device(index);
  c10::cuda::setCurrentCUDAStream(
      c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(stream), index));
}

void TrimMemory() {
  // After a lost context freeing fails too; the process ends then anyway.
  try {
    c10::cuda::CUDACachingAllocator::emptyCache();
  } catch (const std::exception&) {
  }
}

void BeginCapture() {
  Capturing() = std::make_unique<at::cuda::CUDAGraph>();
  // Only what this thread does is captured, and only its unsafe calls break it.
  Capturing()->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
}

void* EndCapture() {
  std::unique_ptr<at::cuda::CUDAGraph> graph = std::move(Capturing());
  TORCH_CHECK(graph, "no capture has begun");
  graph->capture_end();
  return graph.release();
}

void Replay(void* graph) { static_cast<at::cuda::CUDAGraph*>(graph)->replay(); }

void ReleaseGraph(void* graph) { delete static_cast<at::cuda::CUDAGraph*>(graph); }

}  // namespace mtmc::worker
