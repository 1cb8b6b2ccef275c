// SPDX-License-Identifier: Apache-2.0
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/InferenceMode.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "worker/aten/conversion.h"
#include "worker/aten/cuda_capture.h"
#include "worker/aten/plugin_abi.h"

namespace mtmc::worker {
namespace {

// A result and the shape that the border points to.
struct Storage {
  at::Tensor tensor;
};

c10::Device& CurrentDevice() {
  static c10::Device device(c10::kCPU);
  return device;
}

// Runs `body`; an exception becomes a message and false.
template <typename Body>
bool Guard(char* message, Body body) {
  std::string text;
  try {
    body();
    return true;
  } catch (const c10::Error& error) {
    // Without the C++ stack, which tells a program's author nothing.
    text = error.what_without_backtrace();
  } catch (const std::exception& error) {
    text = error.what();
  }
  text.resize(std::min<size_t>(text.size(), MTMC_ATEN_MESSAGE_BYTES - 1));
  std::memcpy(message, text.c_str(), text.size() + 1);
  return false;
}

bool Initialize(const MtmcAtenOptions* options, char* message) {
  return Guard(message, [&] {
    at::set_num_threads(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
    if (options->cuda_device < 0) return;
    CurrentDevice() = c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(options->cuda_device));
    at::globalContext().lazyInitDevice(c10::kCUDA);
    at::globalContext().setBenchmarkCuDNN(true);
    UseCudaStream(options->cuda_device, options->cuda_stream);
  });
}

void SetPrecision(MtmcAtenPrecision precision) {
  at::globalContext().setAllowTF32CuBLAS(precision == MTMC_ATEN_PRECISION_TF32);
  at::globalContext().setAllowTF32CuDNN(precision != MTMC_ATEN_PRECISION_IEEE);
}

// Overloads of `op`, the unnamed one first; looked up once.
const std::vector<c10::OperatorHandle>& Overloads(const std::string& op) {
  static auto& known = *new std::unordered_map<std::string, std::vector<c10::OperatorHandle>>;
  auto found = known.find(op);
  if (found != known.end()) return found->second;
  std::vector<c10::OperatorHandle> handles;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name != op) continue;
    if (auto handle = c10::Dispatcher::singleton().findSchema(name)) handles.push_back(*handle);
  }
  std::sort(handles.begin(), handles.end(), [](const auto& a, const auto& b) {
    return a.operator_name().overload_name < b.operator_name().overload_name;
  });
  return known[op] = std::move(handles);
}

std::string OverloadOf(const MtmcAtenCall& call) {
  const std::string overload = call.overload;
  return overload == "default" ? "" : overload;
}

// Where the generator starts, of calls that are being captured and of graphs. A replay
// goes on from the state that the generator has then, so it is set before each.
struct CapturedSeeds {
  std::optional<uint64_t> current;
  std::unordered_map<void*, uint64_t> of_graph;
};

CapturedSeeds& Seeds() {
  static auto& seeds = *new CapturedSeeds;
  return seeds;
}

void StartGenerator(uint64_t seed) {
  at::manual_seed(seed);
  Seeds().current = seed;
}

struct ResolvedCall {
  c10::OperatorHandle op;
  torch::jit::Stack stack;
};

// The operator and its arguments. c10::Error when no overload takes them.
ResolvedCall Resolve(const MtmcAtenCall& call) {
  const bool is_named = call.overload[0] != '\0';
  std::optional<ResolvedCall> resolved;
  std::string known;
  for (const c10::OperatorHandle& handle : Overloads(call.op)) {
    if (is_named && handle.operator_name().overload_name != OverloadOf(call)) continue;
    if (auto stack = Match(handle.schema(), call, CurrentDevice())) {
      resolved = {handle, *std::move(stack)};
      break;
    }
    known += "\n  " + c10::toString(handle.schema());
  }
  TORCH_CHECK(resolved, "no form of '", call.op, "' takes these arguments; known are:", known);
  return *std::move(resolved);
}

// [N, C, ...] as [N, ..., C], without a copy.
at::Tensor WithChannelsLast(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.dim() >= 3 && tensor.dim() <= 5, "a result with ", tensor.dim(),
              " axes has no layout=channels_last");
  return tensor.movedim(1, -1);
}

void Append(at::Tensor tensor, bool is_channels_last, std::vector<MtmcAtenResult>& results) {
  MtmcAtenResult result{};
  if (tensor.defined()) {
    if (is_channels_last) tensor = WithChannelsLast(tensor);
    auto storage = std::make_unique<Storage>(Storage{tensor.contiguous()});
    const at::Tensor& dense = storage->tensor;
    const auto type = FindBorderType(dense.scalar_type());
    TORCH_CHECK(type.has_value(), "a result has element type ", dense.scalar_type());
    result.tensor = {.data = dense.data_ptr(),
                     .data_type = *type,
                     .rank = static_cast<int32_t>(dense.dim()),
                     .shape = dense.sizes().data()};
    result.storage = storage.release();
  }
  results.push_back(result);
}

void Release(void* storage) { delete static_cast<Storage*>(storage); }

bool Call(const MtmcAtenCall* call, MtmcAtenResult* results, size_t capacity, size_t* count,
          char* message) {
  std::vector<MtmcAtenResult> all;
  const bool is_done = Guard(message, [&] {
    const c10::InferenceMode guard;
    SetPrecision(call->precision);
    auto [op, stack] = Resolve(*call);
    if (const auto seed = FindSeed(*call)) StartGenerator(*seed);
    op.callBoxed(stack);
    for (const c10::IValue& value : stack) {
      if (value.isTensor()) {
        Append(value.toTensor(), call->is_channels_last, all);
      } else if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) {
          Append(tensor, call->is_channels_last, all);
        }
      } else {
        Append(at::Tensor(), false, all);
      }
    }
    TORCH_CHECK(all.size() <= capacity, "there are ", all.size(), " results");
  });
  if (!is_done) {
    for (const MtmcAtenResult& result : all) Release(result.storage);
    return false;
  }
  std::copy(all.begin(), all.end(), results);
  *count = all.size();
  return true;
}

bool BeginCaptureGuarded(char* message) {
  return Guard(message, [] {
    Seeds().current.reset();
    BeginCapture();
  });
}

bool EndCaptureGuarded(void** graph, char* message) {
  return Guard(message, [&] {
    *graph = EndCapture();
    if (Seeds().current) Seeds().of_graph[*graph] = *Seeds().current;
  });
}

bool ReplayGuarded(void* graph, char* message) {
  return Guard(message, [&] {
    const auto found = Seeds().of_graph.find(graph);
    if (found != Seeds().of_graph.end()) at::manual_seed(found->second);
    Replay(graph);
  });
}

void ReleaseCaptured(void* graph) {
  Seeds().of_graph.erase(graph);
  ReleaseGraph(graph);
}

constexpr MtmcAtenFunctions kFunctions = {.abi_version = MTMC_ATEN_ABI_VERSION,
                                          .torch_version = TORCH_VERSION,
                                          .initialize = Initialize,
                                          .call = Call,
                                          .release = Release,
                                          .trim = TrimMemory,
                                          .begin_capture = BeginCaptureGuarded,
                                          .end_capture = EndCaptureGuarded,
                                          .replay = ReplayGuarded,
                                          .release_graph = ReleaseCaptured};

}  // namespace
}  // namespace mtmc::worker

extern "C" __attribute__((visibility("default"))) const MtmcAtenFunctions* MtmcAtenEntry() {
  return &mtmc::worker::kFunctions;
}
