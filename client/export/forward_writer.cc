// SPDX-License-Identifier: Apache-2.0
#include "client/export/forward_writer.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "kernel/program/signature.h"

namespace mtmc::client {
namespace {

using kernel::DataType;

std::string TorchType(DataType type) {
  switch (type) {
    case DataType::kF64:
      return "float64";
    case DataType::kF32:
      return "float32";
    case DataType::kF16:
      return "float16";
    case DataType::kBf16:
      return "bfloat16";
    case DataType::kI64:
      return "int64";
    case DataType::kI32:
      return "int32";
    case DataType::kI16:
      return "int16";
    case DataType::kI8:
      return "int8";
    case DataType::kU8:
      return "uint8";
    case DataType::kBool:
      return "bool";
  }
  return "";
}

std::string Shape(const std::vector<int64_t>& shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")");
}

// The name under which ctypes and NumPy know a kernel's scalar parameter.
std::string ScalarTypeName(const kernel::ScalarType& type, kernel::Dialect dialect) {
  const int bits = 8 * type.bytes;
  const bool is_cuda = dialect == kernel::Dialect::kCuda;
  switch (type.kind) {
    case kernel::ScalarType::Kind::kFloating:
      if (is_cuda) return bits == 64 ? "_mtmc_ctypes.c_double" : "_mtmc_ctypes.c_float";
      return absl::StrCat("_mtmc_numpy.float", bits);
    case kernel::ScalarType::Kind::kUnsigned:
      return absl::StrCat(is_cuda ? "_mtmc_ctypes.c_uint" : "_mtmc_numpy.uint", bits);
    case kernel::ScalarType::Kind::kSigned:
      return absl::StrCat(is_cuda ? "_mtmc_ctypes.c_int" : "_mtmc_numpy.int", bits);
    case kernel::ScalarType::Kind::kBool:
      return is_cuda ? "_mtmc_ctypes.c_bool" : "_mtmc_numpy.uint8";
  }
  return "";
}

std::string Literal(double value) { return absl::StrFormat("%.17g", value); }

std::string CallArgumentText(const kernel::CallArgument& argument) {
  struct Writer {
    std::string operator()(const kernel::NoneLiteral&) const { return "None"; }

    std::string operator()(const kernel::CallArgument::TensorName& tensor) const {
      return tensor.name;
    }

    std::string operator()(int64_t value) const { return absl::StrCat(value); }

    std::string operator()(double value) const {
      return absl::StrCat("float(\"", Literal(value), "\")");
    }

    std::string operator()(bool value) const { return value ? "True" : "False"; }

    std::string operator()(const std::string& value) const {
      return absl::StrCat("\"", absl::CEscape(value), "\"");
    }

    std::string operator()(const std::vector<kernel::CallArgument>& list) const {
      return absl::StrCat("[",
                          absl::StrJoin(list, ", ",
                                        [](std::string* out, const auto& element) {
                                          absl::StrAppend(out, CallArgumentText(element));
                                        }),
                          "]");
    }
  };

  const std::string text = std::visit(Writer(), argument.value);
  return argument.keyword.empty() ? text : absl::StrCat(argument.keyword, "=", text);
}

// Writes the body line by line, each indented to the method.
class ForwardWriter {
 public:
  ForwardWriter(const kernel::Program& program, const kernel::Graph& graph,
                const kernel::Bindings& bindings)
      : program_(program), graph_(graph), bindings_(bindings) {
    for (auto& kernel : kernel::FindKernels(program.text, program.dialect).kernels) {
      kernels_.emplace(kernel.name, std::move(kernel));
    }
  }

  absl::StatusOr<std::string> Write() {
    WriteHead();
    MTMC_RETURN_IF_ERROR(WriteBindings());
    WriteBuffers();
    for (const kernel::Step& step : program_.steps) {
      if (const auto* launch = std::get_if<kernel::Launch>(&step)) {
        MTMC_RETURN_IF_ERROR(WriteLaunch(*launch));
      } else {
        WriteCall(std::get<kernel::LibraryCall>(step));
      }
    }
    MTMC_RETURN_IF_ERROR(WriteResults());
    return std::move(text_);
  }

 private:
  template <typename... Parts>
  void Line(const Parts&... parts) {
    absl::StrAppend(&text_, "        ", parts..., "\n");
  }

  void WriteHead() {
    std::vector<const kernel::GraphInput*> arguments;
    for (const kernel::GraphInput& input : graph_.inputs) {
      if (input.kind == kernel::GraphInput::Kind::kUserInput) arguments.push_back(&input);
    }
    std::sort(arguments.begin(), arguments.end(),
              [](const auto* a, const auto* b) { return a->argument_index < b->argument_index; });
    text_ =
        "class ModelNew(Model):\n    \"\"\"Model with its forward replaced by the program "
        "above.\"\"\"\n\n"
        "    @_mtmc_torch.no_grad()\n    def forward(self, *mtmc_arguments):\n";
    for (const kernel::GraphInput* input : arguments) {
      Line(input->name, " = mtmc_arguments[", input->argument_index, "]");
      if (device_.empty()) device_ = absl::StrCat(input->name, ".device");
    }
  }

  absl::Status WriteBindings() {
    for (const kernel::Tensor& tensor : program_.tensors) {
      if (tensor.role != kernel::Tensor::Role::kInput &&
          tensor.role != kernel::Tensor::Role::kWeight) {
        continue;
      }
      const kernel::GraphInput* input = graph_.FindInput(tensor.name);
      if (input == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("the problem has no input '", tensor.name, "'"));
      }
      if (input->kind == kernel::GraphInput::Kind::kUserInput) {
        Line(tensor.name, " = ", tensor.name, ".contiguous()");
        continue;
      }
      if (input->kind == kernel::GraphInput::Kind::kConstant) {
        MTMC_RETURN_IF_ERROR(WriteConstant(*input));
      } else {
        Line(tensor.name, " = ",
             input->kind == kernel::GraphInput::Kind::kParameter ? "self.get_parameter(\""
                                                                 : "self.get_buffer(\"",
             input->target, "\").contiguous()");
      }
      if (device_.empty()) device_ = absl::StrCat(tensor.name, ".device");
    }
    if (device_.empty()) device_ = "_mtmc_torch.device(\"cpu\")";
    Line("device = ", device_);
    return absl::OkStatus();
  }

  absl::Status WriteConstant(const kernel::GraphInput& input) {
    if (input.data.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the content of constant '", input.name,
                       "' is not recorded; register it as a buffer of the model"));
    }
    const std::string bytes = absl::BytesToHexString(input.data);
    Line(input.name, " = _mtmc_torch.frombuffer(bytearray.fromhex(\"", bytes,
         "\"), dtype=_mtmc_torch.", TorchType(input.type.data_type), ").reshape(",
         Shape(input.type.shape), ").to(", device_.empty() ? "\"cpu\"" : device_, ")");
    return absl::OkStatus();
  }

  // Results of calls are bound by the call itself.
  void WriteBuffers() {
    std::set<std::string> bound;
    for (const kernel::Step& step : program_.steps) {
      if (const auto* call = std::get_if<kernel::LibraryCall>(&step)) {
        bound.insert(call->results.begin(), call->results.end());
      }
    }
    for (const kernel::Tensor& tensor : program_.tensors) {
      const bool is_made = tensor.role == kernel::Tensor::Role::kBuffer ||
                           tensor.role == kernel::Tensor::Role::kOutput;
      if (!is_made || bound.contains(tensor.name)) continue;
      Line(tensor.name, " = _mtmc_torch.empty(", Shape(tensor.type.shape), ", dtype=_mtmc_torch.",
           TorchType(tensor.type.data_type), ", device=device)");
    }
  }

  absl::StatusOr<std::string> Extents(const std::array<kernel::IntegerExpression, 3>& extents) {
    std::vector<int64_t> values;
    for (const kernel::IntegerExpression& extent : extents) {
      MTMC_ASSIGN_OR_RETURN(const int64_t value, extent.Evaluate(bindings_));
      values.push_back(value);
    }
    return Shape(values);
  }

  absl::Status WriteLaunch(const kernel::Launch& launch) {
    const auto kernel = kernels_.find(launch.kernel);
    if (kernel == kernels_.end() || kernel->second.parameters.size() != launch.arguments.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the program has no kernel '", launch.kernel,
                                                     "' with ", launch.arguments.size(),
                                                     " parameters"));
    }
    MTMC_ASSIGN_OR_RETURN(const std::string grid, Extents(launch.grid));
    MTMC_ASSIGN_OR_RETURN(const std::string block, Extents(launch.block));
    MTMC_ASSIGN_OR_RETURN(const int64_t shared, launch.shared_bytes.Evaluate(bindings_));
    std::vector<std::string> arguments;
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      MTMC_ASSIGN_OR_RETURN(std::string argument,
                            Argument(launch.arguments[i], kernel->second.parameters[i]));
      arguments.push_back(std::move(argument));
    }
    Line("_mtmc_program.launch(\"", launch.kernel, "\", ", grid, ", ", block, ", ", shared, ", [",
         absl::StrJoin(arguments, ", "), "], device)");
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Argument(const kernel::LaunchArgument& argument,
                                       const kernel::KernelParameter& parameter) {
    if (const auto* tensor = std::get_if<std::string>(&argument.value)) {
      return absl::StrCat("(None, ", *tensor, ")");
    }
    const auto type = kernel::FindScalarType(parameter.type);
    if (!type) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", parameter.type, "' is not a scalar type"));
    }
    const std::string name = ScalarTypeName(*type, program_.dialect);
    if (const auto* real = std::get_if<double>(&argument.value)) {
      return absl::StrCat("(", name, ", ", Literal(*real), ")");
    }
    MTMC_ASSIGN_OR_RETURN(const int64_t value,
                          std::get<kernel::IntegerExpression>(argument.value).Evaluate(bindings_));
    return absl::StrCat("(", name, ", ", value, ")");
  }

  void WriteCall(const kernel::LibraryCall& call) {
    std::string target =
        call.results.size() == 1 ? call.results[0] : absl::StrJoin(call.results, ", ");
    std::string function =
        absl::StrCat("_mtmc_torch.ops.aten.", absl::StripPrefix(call.op, "aten::"));
    if (!call.overload.empty()) absl::StrAppend(&function, ".", call.overload);
    const std::string arguments =
        absl::StrJoin(call.arguments, ", ", [](std::string* out, const auto& argument) {
          absl::StrAppend(out, CallArgumentText(argument));
        });
    if (call.precision == kernel::LibraryCall::Precision::kDefault) {
      Line(target, " = ", function, "(", arguments, ")");
    } else {
      has_precision_ = true;
      const bool allows = call.precision == kernel::LibraryCall::Precision::kTf32;
      Line("with _mtmc_tf32(", allows ? "True" : "False", "):");
      Line("    ", target, " = ", function, "(", arguments, ")");
    }
    for (const std::string& result : call.results) {
      if (result != "_") Line(result, " = ", result, ".contiguous()");
    }
  }

  absl::Status WriteResults() {
    std::vector<std::string> returned;
    for (const kernel::GraphOutput& output : graph_.outputs) {
      if (program_.FindTensor(output.name) == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("the program has no output '", output.name, "'"));
      }
      switch (output.kind) {
        case kernel::GraphOutput::Kind::kUserOutput:
          returned.push_back(output.name);
          break;
        case kernel::GraphOutput::Kind::kBufferMutation:
          Line("self.get_buffer(\"", output.target, "\").copy_(", output.name, ")");
          break;
        case kernel::GraphOutput::Kind::kInputMutation:
          Line(output.target, ".copy_(", output.name, ")");
          break;
      }
    }
    Line("return ", returned.empty() ? "None" : absl::StrJoin(returned, ", "));
    if (has_precision_) {
      text_ = absl::StrCat(
          "class _mtmc_tf32:\n    \"\"\"Allows or forbids TF32 in library calls while it is "
          "entered.\"\"\"\n\n"
          "    def __init__(self, allows):\n        self._allows = allows\n\n"
          "    def __enter__(self):\n        b = _mtmc_torch.backends\n"
          "        self._before = (b.cuda.matmul.allow_tf32, b.cudnn.allow_tf32)\n"
          "        b.cuda.matmul.allow_tf32 = b.cudnn.allow_tf32 = self._allows\n\n"
          "    def __exit__(self, *_):\n        b = _mtmc_torch.backends\n"
          "        b.cuda.matmul.allow_tf32, b.cudnn.allow_tf32 = self._before\n\n\n",
          text_);
    }
    return absl::OkStatus();
  }

  const kernel::Program& program_;
  const kernel::Graph& graph_;
  const kernel::Bindings& bindings_;
  std::map<std::string, kernel::KernelSignature> kernels_;
  // Python expression of the device to work on.
  std::string device_;
  bool has_precision_ = false;
  std::string text_;
};

}  // namespace

absl::StatusOr<std::string> WriteForward(const kernel::Program& program, const kernel::Graph& graph,
                                         const kernel::Bindings& bindings) {
  return ForwardWriter(program, graph, bindings).Write();
}

}  // namespace mtmc::client
