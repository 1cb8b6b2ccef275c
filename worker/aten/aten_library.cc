// SPDX-License-Identifier: Apache-2.0
#include "worker/aten/aten_library.h"

#include <dlfcn.h>

#include <cstddef>
#include <deque>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/aten/plugin_abi.h"

namespace mtmc::worker {
namespace {

// More results than any operator has; topk, lstm and batch_norm have 2 to 5.
constexpr size_t kMaxResults = 64;

Failure LibraryFailure(int line, const std::string& op, const std::string& message) {
  const bool is_memory = message.find("out of memory") != std::string::npos ||
                         message.find("can't allocate memory") != std::string::npos;
  return {.kind = is_memory ? Failure::Kind::kOutOfMemory : Failure::Kind::kLibrary,
          .message = absl::StrCat("line ", line, ": ", op, " failed"),
          .diagnostics = message,
          // libtorch passes a fault of an earlier launch on as its own error.
          .is_context_lost = message.find("CUDA error") != std::string::npos};
}

// A call in the plug-in's form, with everything its pointers refer to.
class MarshalledCall {
 public:
  MarshalledCall(const kernel::LibraryCall& call, const Library::FindOperand& find) : find_(find) {
    const std::vector<MtmcAtenValue>& arguments = Convert(call.arguments);
    call_ = {.op = call.op.c_str(),
             .overload = call.overload.c_str(),
             .arguments = arguments.data(),
             .num_arguments = arguments.size(),
             .precision = ToPrecision(call.precision),
             .is_channels_last = call.is_channels_last};
  }

  MarshalledCall(const MarshalledCall&) = delete;
  MarshalledCall& operator=(const MarshalledCall&) = delete;

  const MtmcAtenCall& call() const { return call_; }

  // What is wrong with the tensors that it names; empty when nothing is.
  const std::string& problem() const { return problem_; }

 private:
  static MtmcAtenPrecision ToPrecision(kernel::LibraryCall::Precision precision) {
    switch (precision) {
      case kernel::LibraryCall::Precision::kDefault:
        return MTMC_ATEN_PRECISION_DEFAULT;
      case kernel::LibraryCall::Precision::kTf32:
        return MTMC_ATEN_PRECISION_TF32;
      case kernel::LibraryCall::Precision::kIeee:
        return MTMC_ATEN_PRECISION_IEEE;
    }
    return MTMC_ATEN_PRECISION_DEFAULT;
  }

  const std::vector<MtmcAtenValue>& Convert(const std::vector<kernel::CallArgument>& arguments) {
    std::vector<MtmcAtenValue> values;
    for (const kernel::CallArgument& argument : arguments) values.push_back(Convert(argument));
    return lists_.emplace_back(std::move(values));
  }

  MtmcAtenValue Convert(const kernel::CallArgument& argument) {
    MtmcAtenValue value{};
    value.keyword = argument.keyword.empty() ? nullptr : argument.keyword.c_str();
    if (const auto* tensor = std::get_if<kernel::CallArgument::TensorName>(&argument.value)) {
      value.kind = MTMC_ATEN_TENSOR;
      value.tensor = Convert(*tensor);
    } else if (const auto* integer = std::get_if<int64_t>(&argument.value)) {
      value.kind = MTMC_ATEN_INTEGER;
      value.integer = *integer;
    } else if (const auto* real = std::get_if<double>(&argument.value)) {
      value.kind = MTMC_ATEN_REAL;
      value.real = *real;
    } else if (const auto* boolean = std::get_if<bool>(&argument.value)) {
      value.kind = MTMC_ATEN_BOOLEAN;
      value.integer = *boolean ? 1 : 0;
    } else if (const auto* text = std::get_if<std::string>(&argument.value)) {
      value.kind = MTMC_ATEN_TEXT;
      value.text = text->c_str();
    } else if (const auto* list = std::get_if<std::vector<kernel::CallArgument>>(&argument.value)) {
      const std::vector<MtmcAtenValue>& items = Convert(*list);
      value.kind = MTMC_ATEN_LIST;
      value.items = items.data();
      value.num_items = items.size();
    }
    return value;
  }

  MtmcAtenTensor Convert(const kernel::CallArgument::TensorName& tensor) {
    const LibraryOperand operand = find_(tensor.name);
    const int64_t elements = operand.type.elements();
    if (!operand.address && elements > 0) {
      problem_ = absl::StrCat("'", tensor.name, "' has no value yet");
    }
    MtmcAtenTensor converted{.data = operand.address,
                             .data_type = static_cast<int32_t>(operand.type.data_type)};
    if (!tensor.view) {
      SetShape(operand.type.shape, converted);
      return converted;
    }
    if (!kernel::LiesWithin(*tensor.view, elements)) {
      problem_ = absl::StrCat("as_strided reaches beyond the elements of '", tensor.name, "'");
      return converted;
    }
    SetShape(tensor.view->shape, converted);
    converted.strides = extents_.emplace_back(tensor.view->strides).data();
    if (operand.address) {
      const int64_t bytes = tensor.view->offset * kernel::SizeOf(operand.type.data_type);
      converted.data = static_cast<std::byte*>(operand.address) + bytes;
    }
    return converted;
  }

  void SetShape(const std::vector<int64_t>& shape, MtmcAtenTensor& tensor) {
    tensor.rank = static_cast<int32_t>(shape.size());
    tensor.shape = extents_.emplace_back(shape).data();
  }

  const Library::FindOperand& find_;
  MtmcAtenCall call_{};
  std::string problem_;
  // Deques, because pointers to their elements stay valid.
  std::deque<std::vector<MtmcAtenValue>> lists_;
  std::deque<std::vector<int64_t>> extents_;
};

class AtenTensor final : public LibraryTensor {
 public:
  AtenTensor(const MtmcAtenFunctions& functions, const MtmcAtenResult& result)
      : functions_(functions), storage_(result.storage) {
    operand_.address = result.tensor.data;
    operand_.type.data_type = static_cast<kernel::DataType>(result.tensor.data_type);
    operand_.type.shape.assign(result.tensor.shape, result.tensor.shape + result.tensor.rank);
  }

  ~AtenTensor() override { functions_.release(storage_); }

  AtenTensor(const AtenTensor&) = delete;
  AtenTensor& operator=(const AtenTensor&) = delete;

  const LibraryOperand& operand() const override { return operand_; }

 private:
  const MtmcAtenFunctions& functions_;
  void* const storage_;
  LibraryOperand operand_;
};

class AtenGraph final : public Graph {
 public:
  AtenGraph(const MtmcAtenFunctions& functions, void* graph)
      : functions_(functions), graph_(graph) {}

  ~AtenGraph() override { functions_.release_graph(graph_); }

  AtenGraph(const AtenGraph&) = delete;
  AtenGraph& operator=(const AtenGraph&) = delete;

  MaybeFailure Enqueue() override {
    char message[MTMC_ATEN_MESSAGE_BYTES] = {};
    if (functions_.replay(graph_, message)) return std::nullopt;
    return Failure{.kind = Failure::Kind::kLaunch,
                   .message = "the captured graph could not be launched",
                   .diagnostics = message,
                   .is_context_lost = true};
  }

 private:
  const MtmcAtenFunctions& functions_;
  void* const graph_;
};

class RepeatedBody final : public Graph {
 public:
  explicit RepeatedBody(Body body) : body_(std::move(body)) {}

  MaybeFailure Enqueue() override { return body_(); }

 private:
  const Body body_;
};

absl::StatusOr<void*> OpenShared(const std::string& path) {
  // Global, so that the plug-in and libtorch's own late loads find them.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library) return library;
  return absl::UnavailableError(absl::StrCat("cannot open ", path, ": ", dlerror()));
}

}  // namespace

AtenLibrary::AtenLibrary(const MtmcAtenFunctions& functions, bool is_cuda)
    : functions_(functions), is_cuda_(is_cuda) {}

absl::StatusOr<std::unique_ptr<AtenLibrary>> AtenLibrary::Open(const Options& options) {
  const bool is_cuda = options.cuda_device >= 0;
  std::vector<std::string> libraries = {"libc10.so", "libtorch_cpu.so"};
  // Each needs those before it; nothing but the order makes them find each other.
  if (is_cuda) libraries.insert(libraries.end(), {"libc10_cuda.so", "libtorch_cuda.so"});
  for (const std::string& name : libraries) {
    MTMC_RETURN_IF_ERROR(OpenShared(absl::StrCat(options.torch_lib_dir, "/", name)).status());
  }
  MTMC_ASSIGN_OR_RETURN(void* plugin, OpenShared(options.plugin));
  auto* entry = reinterpret_cast<MtmcAtenEntryFunction*>(dlsym(plugin, kMtmcAtenEntry));
  if (!entry) return absl::UnavailableError(options.plugin + " is not an ATen plug-in");
  const MtmcAtenFunctions* functions = entry();
  if (functions->abi_version != MTMC_ATEN_ABI_VERSION) {
    return absl::UnavailableError(absl::StrCat(options.plugin, " has interface version ",
                                               functions->abi_version, ", not ",
                                               MTMC_ATEN_ABI_VERSION));
  }
  const MtmcAtenOptions settings{.cuda_device = options.cuda_device,
                                 .cuda_stream = options.cuda_stream};
  char message[MTMC_ATEN_MESSAGE_BYTES] = {};
  if (!functions->initialize(&settings, message)) {
    return absl::UnavailableError(absl::StrCat("libtorch cannot be used: ", message));
  }
  return std::unique_ptr<AtenLibrary>(new AtenLibrary(*functions, is_cuda));
}

void AtenLibrary::Trim() { functions_.trim(); }

std::string AtenLibrary::torch_version() const { return functions_.torch_version; }

Outcome<std::vector<std::unique_ptr<LibraryTensor>>> AtenLibrary::Call(
    const kernel::LibraryCall& call, const FindOperand& find) {
  const MarshalledCall marshalled(call, find);
  if (!marshalled.problem().empty()) {
    return LibraryFailure(call.line, call.op, marshalled.problem());
  }
  MtmcAtenResult results[kMaxResults] = {};
  size_t count = 0;
  char message[MTMC_ATEN_MESSAGE_BYTES] = {};
  if (!functions_.call(&marshalled.call(), results, kMaxResults, &count, message)) {
    return LibraryFailure(call.line, call.op, message);
  }
  std::vector<std::unique_ptr<LibraryTensor>> tensors;
  for (size_t i = 0; i < count; ++i) {
    tensors.push_back(results[i].storage ? std::make_unique<AtenTensor>(functions_, results[i])
                                         : nullptr);
  }
  return tensors;
}

Outcome<std::unique_ptr<Graph>> AtenLibrary::Capture(const Body& body) {
  if (!is_cuda_) return std::unique_ptr<Graph>(std::make_unique<RepeatedBody>(body));
  char message[MTMC_ATEN_MESSAGE_BYTES] = {};
  auto fail = [&message](const char* what) {
    return Failure{.kind = Failure::Kind::kLibrary,
                   .message = absl::StrCat("the plan cannot be captured: ", what),
                   .diagnostics = message};
  };
  if (!functions_.begin_capture(message)) return fail("capture did not begin");
  const MaybeFailure failure = body();
  void* graph = nullptr;
  const bool is_captured = functions_.end_capture(&graph, message);
  std::unique_ptr<Graph> owned;
  if (is_captured) owned = std::make_unique<AtenGraph>(functions_, graph);
  if (failure) return *failure;
  if (!owned) return fail("capture did not end");
  return owned;
}

}  // namespace mtmc::worker
