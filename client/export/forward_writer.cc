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
#include "absl/strings/str_join.h"
#include "client/export/argument_writer.h"
#include "client/export/module_writer.h"
#include "client/export/python_text.h"
#include "client/export/replay.h"
#include "client/export/structure_writer.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "kernel/program/signature.h"

namespace mtmc::client {
namespace {

using kernel::Tensor;

// Of a program's name among PyTorch's operators.
constexpr size_t kDigestLetters = 16;

// `((2, 3), _mtmc_torch.float32)`.
std::string TypeText(const kernel::TensorType& type) {
  return absl::StrCat("(", Tuple(type.shape), ", ", TorchType(type.data_type), ")");
}

// `(2, 3), (3, 1), _mtmc_torch.float32`, of a dense tensor; `keyword` precedes the element type.
std::string MemoryText(const kernel::TensorType& type, const char* keyword = "") {
  std::vector<int64_t> strides(type.shape.size());
  int64_t step = 1;
  for (size_t i = type.shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(type.shape[i], 1);
  }
  return absl::StrCat(Tuple(type.shape), ", ", Tuple(strides), ", ", keyword,
                      TorchType(type.data_type));
}

bool IsMade(const Tensor& tensor) {
  return tensor.role == Tensor::Role::kBuffer || tensor.role == Tensor::Role::kOutput;
}

void AddTensors(const std::vector<kernel::CallArgument>& arguments,
                std::vector<std::string>& names) {
  for (const kernel::CallArgument& argument : arguments) {
    if (const auto* tensor = std::get_if<kernel::CallArgument::TensorName>(&argument.value)) {
      names.push_back(tensor->name);
    } else if (const auto* list = std::get_if<std::vector<kernel::CallArgument>>(&argument.value)) {
      AddTensors(*list, names);
    }
  }
}

// The tensors that a step reads or writes.
std::vector<std::string> TensorsOf(const kernel::Step& step) {
  std::vector<std::string> names;
  if (const auto* launch = std::get_if<kernel::Launch>(&step)) {
    for (const kernel::LaunchArgument& argument : launch->arguments) {
      if (const auto* name = std::get_if<std::string>(&argument.value)) names.push_back(*name);
    }
  } else {
    const auto& call = std::get<kernel::LibraryCall>(step);
    AddTensors(call.arguments, names);
    names.insert(names.end(), call.results.begin(), call.results.end());
  }
  return names;
}

// Writes three texts: what is prepared at import, the plan as a function of tensors alone,
// and the class that finds the tensors.
class ForwardWriter {
 public:
  ForwardWriter(const kernel::Program& program, const kernel::Graph& graph,
                const kernel::Bindings& bindings)
      : program_(program),
        graph_(graph),
        bindings_(bindings),
        replays_(program.dialect == kernel::Dialect::kCuda && ReplayPays(program)),
        arguments_(graph) {
    for (auto& kernel : kernel::FindKernels(program.text, program.dialect).kernels) {
      kernels_.emplace(kernel.name, std::move(kernel));
    }
    for (size_t i = 0; i < program.steps.size(); ++i) {
      for (const std::string& name : TensorsOf(program.steps[i])) last_use_[name] = i;
    }
  }

  absl::StatusOr<std::string> Write() {
    MTMC_RETURN_IF_ERROR(WriteInputs());
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      if (const auto* launch = std::get_if<kernel::Launch>(&program_.steps[i])) {
        MTMC_RETURN_IF_ERROR(WriteLaunch(*launch, i));
      } else {
        WriteCall(std::get<kernel::LibraryCall>(program_.steps[i]), i);
      }
      WriteEnds(i);
    }
    MTMC_RETURN_IF_ERROR(WriteResults());
    // Before all that asked for them.
    const std::string body = std::exchange(forward_, "");
    for (const std::string& line : modules_.Preparation()) Forward(line);
    const std::string plan = absl::StrCat(
        "_mtmc_program = _MtmcProgram(\n    _MTMC_SOURCE, ", Macros(), ",\n    [",
        absl::StrJoin(types_, ",\n     "), "],\n    replays=", replays_ ? "True" : "False",
        ", apart=[", absl::StrJoin(apart_, ", "), "], results=[", absl::StrJoin(made_types_, ", "),
        "])\n", prepared_, "\n\ndef _mtmc_plan(", absl::StrJoin(parameters_, ", "), "):\n", plan_);
    const std::string digest =
        base::Sha256(program_.text + plan).sha256_hex.substr(0, kDigestLetters);
    return absl::StrCat(
        plan, "\n\n_mtmc_operator = _MtmcOperator(\n    \"", digest,
        "\", _mtmc_program, _mtmc_plan,\n    [", absl::StrJoin(result_types_, ",\n     "), "])\n",
        "\n\nclass ModelNew(Model):\n"
        "    \"\"\"Model with its forward replaced by the program above, which torch.compile and\n"
        "    torch.export take for one operator. There is no backward: whoever asks for gradients\n"
        "    gets an error, and a call under torch.no_grad() takes less time.\"\"\"\n\n"
        "    def forward(self, *arguments, **keywords):\n",
        forward_, body);
  }

 private:
  template <typename... Parts>
  void Plan(const Parts&... parts) {
    absl::StrAppend(&plan_, "    ", parts..., "\n");
  }

  template <typename... Parts>
  void Forward(const Parts&... parts) {
    absl::StrAppend(&forward_, "        ", parts..., "\n");
  }

  std::string Macros() const {
    std::vector<std::string> entries;
    for (const kernel::TuneParameter& parameter : program_.tune) {
      entries.push_back(absl::StrCat("\"", parameter.name, "\": ", bindings_.at(parameter.name)));
    }
    return absl::StrCat("{", absl::StrJoin(entries, ", "), "}");
  }

  absl::Status WriteInputs() {
    parameters_ = {"mtmc_device"};
    for (const std::string& line : arguments_.Preparation()) Forward(line);
    std::vector<std::string> inputs;
    for (const Tensor& tensor : program_.tensors) {
      if (IsMade(tensor)) continue;
      const kernel::GraphInput* input = graph_.FindInput(tensor.name);
      if (input == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("the problem has no input '", tensor.name, "'"));
      }
      if (input->kind == kernel::GraphInput::Kind::kConstant) {
        MTMC_RETURN_IF_ERROR(WriteConstant(*input));
        continue;
      }
      const std::string source = Source(*input);
      places_.emplace(source, absl::StrCat("inputs[", inputs.size(), "]"));
      inputs.push_back(absl::StrCat(source, ",  # ", tensor.name));
      parameters_.push_back(Variable(tensor.name));
      types_.push_back(TypeText(tensor.type));
    }
    Forward("inputs = [");
    for (const std::string& input : inputs) Forward("    ", input);
    Forward("]");
    return absl::OkStatus();
  }

  std::string Source(const kernel::GraphInput& input) {
    switch (input.kind) {
      case kernel::GraphInput::Kind::kParameter:
        return modules_.Parameter(input.target);
      case kernel::GraphInput::Kind::kUserInput:
        return arguments_.Tensor(input.name);
      default:
        return modules_.Buffer(input.target, arguments_.First());
    }
  }

  absl::Status WriteConstant(const kernel::GraphInput& input) {
    if (input.data.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the content of constant '", input.name,
                       "' is not recorded; register it as a buffer of the model"));
    }
    absl::StrAppend(&prepared_, "_mtmc_constant_", input.name, " = _MtmcConstant(\"",
                    absl::BytesToHexString(input.data), "\", ", TorchType(input.type.data_type),
                    ", ", Tuple(input.type.shape), ")\n");
    Plan(Variable(input.name), " = _mtmc_constant_", input.name, ".on(mtmc_device)");
    return absl::OkStatus();
  }

  // A launch writes into memory that is there; a library call brings its own.
  void WriteAllocations(size_t step) {
    for (const std::string& name : TensorsOf(program_.steps[step])) {
      const Tensor* tensor = program_.FindTensor(name);
      if (tensor == nullptr || !IsMade(*tensor) || !existing_.insert(name).second) continue;
      if (replays_ && IsReturned(name)) {
        Plan(Variable(name), " = _mtmc_program.result(", made_types_.size(), ")");
        made_types_.push_back(absl::StrCat("(", MemoryText(tensor->type), ")"));
        continue;
      }
      // Takes PyTorch a microsecond less than without strides.
      Plan(Variable(name), " = _mtmc_torch.empty_strided(", MemoryText(tensor->type, "dtype="),
           ", device=mtmc_device)");
    }
  }

  bool IsReturned(const std::string& name) const {
    return std::any_of(graph_.outputs.begin(), graph_.outputs.end(), [&](const auto& output) {
      return output.name == name && output.kind == kernel::GraphOutput::Kind::kUserOutput;
    });
  }

  // Scratch goes back as soon as nothing needs it: on a CPU, once it has been waited for.
  void WriteEnds(size_t step) {
    // Kernels that fill as much take far longer than a wait.
    constexpr int64_t kKept = int64_t{64} << 20;
    for (const auto& [name, last] : last_use_) {
      const Tensor* tensor = program_.FindTensor(name);
      const bool is_output = tensor != nullptr && tensor->role != Tensor::Role::kBuffer;
      if (last != step || is_output) continue;
      ended_.push_back(Variable(name));
      if (tensor != nullptr) ended_bytes_ += tensor->type.bytes();
    }
    if (ended_bytes_ > kKept) WriteWait();
    if (!is_pending_) WriteDeletions();
  }

  void WriteDeletions() {
    if (!ended_.empty()) Plan("del ", absl::StrJoin(ended_, ", "));
    ended_.clear();
    ended_bytes_ = 0;
  }

  // On a GPU, PyTorch's streams keep the order.
  void WriteWait() {
    if (!is_pending_) return;
    Plan("_mtmc_program.wait()");
    is_pending_ = false;
  }

  absl::StatusOr<std::string> Extents(const std::array<kernel::IntegerExpression, 3>& extents) {
    std::vector<int64_t> values;
    for (const kernel::IntegerExpression& extent : extents) {
      MTMC_ASSIGN_OR_RETURN(const int64_t value, extent.Evaluate(bindings_));
      values.push_back(value);
    }
    return Tuple(values);
  }

  absl::Status WriteLaunch(const kernel::Launch& launch, size_t step) {
    const auto kernel = kernels_.find(launch.kernel);
    if (kernel == kernels_.end() || kernel->second.parameters.size() != launch.arguments.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the program has no kernel '", launch.kernel,
                                                     "' with ", launch.arguments.size(),
                                                     " parameters"));
    }
    MTMC_ASSIGN_OR_RETURN(const std::string grid, Extents(launch.grid));
    MTMC_ASSIGN_OR_RETURN(const std::string block, Extents(launch.block));
    MTMC_ASSIGN_OR_RETURN(const int64_t shared, launch.shared_bytes.Evaluate(bindings_));
    std::vector<std::string> tensors;
    std::vector<std::string> scalars;
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      if (const auto* name = std::get_if<std::string>(&launch.arguments[i].value)) {
        tensors.push_back(Variable(*name));
        scalars.emplace_back("None");
        continue;
      }
      MTMC_ASSIGN_OR_RETURN(std::string scalar,
                            ScalarArgument(launch.arguments[i], kernel->second.parameters[i]));
      scalars.push_back(std::move(scalar));
    }
    WriteAllocations(step);
    absl::StrAppend(&prepared_, "_mtmc_step_", step, " = _MtmcKernel(_mtmc_program, \"",
                    launch.kernel, "\", ", grid, ", ", block, ", ", shared, ", [",
                    absl::StrJoin(scalars, ", "), "])\n");
    Plan("_mtmc_step_", step, "(", absl::StrJoin(tensors, ", "), ")");
    is_pending_ = program_.dialect == kernel::Dialect::kOpenCl;
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ScalarArgument(const kernel::LaunchArgument& argument,
                                             const kernel::KernelParameter& parameter) {
    const auto type = kernel::FindScalarType(parameter.type);
    if (!type) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", parameter.type, "' is not a scalar type"));
    }
    if (const auto* real = std::get_if<double>(&argument.value)) return ScalarText(*real, *type);
    MTMC_ASSIGN_OR_RETURN(const int64_t value,
                          std::get<kernel::IntegerExpression>(argument.value).Evaluate(bindings_));
    return ScalarText(value, *type);
  }

  void WriteCall(const kernel::LibraryCall& call, size_t step) {
    absl::StrAppend(&prepared_, "_mtmc_step_", step, " = _MtmcLibraryCall(\"", call.op, "\", \"",
                    call.overload, "\", \"", std::string(ToText(call.precision)),
                    call.is_channels_last ? "\", is_channels_last=True)\n" : "\")\n");
    std::vector<std::string> arguments = {"mtmc_device"};
    for (const kernel::CallArgument& argument : call.arguments) {
      // Whoever runs the file has their own generator of random numbers.
      if (argument.keyword != "seed") arguments.push_back(ArgumentText(argument));
    }
    std::vector<std::string> results;
    for (const std::string& result : call.results) results.push_back(Variable(result));
    existing_.insert(call.results.begin(), call.results.end());
    WriteWait();
    WriteDeletions();
    // A plan may leave the last results of an operator out.
    Plan("[", absl::StrJoin(results, ", "), ", *_] = _mtmc_step_", step, "(",
         absl::StrJoin(arguments, ", "), ")");
  }

  absl::Status WriteResults() {
    WriteWait();
    std::vector<std::string> returned;
    std::vector<std::string> targets;
    // By element type, what goes where at the end of the plan.
    std::map<std::string, std::pair<std::vector<std::string>, std::vector<std::string>>> copies;
    std::map<std::string, std::string> leaves;
    for (const kernel::GraphOutput& output : graph_.outputs) {
      if (program_.FindTensor(output.name) == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("the program has no output '", output.name, "'"));
      }
      if (output.kind == kernel::GraphOutput::Kind::kUserOutput) {
        leaves[output.name] = absl::StrCat("results[", returned.size(), "]");
        returned.push_back(Variable(output.name));
        result_types_.push_back(TypeText(output.type));
        continue;
      }
      parameters_.push_back(absl::StrCat("mtmc_target_", targets.size()));
      auto& [to, from] = copies[TorchType(output.type.data_type)];
      to.push_back(parameters_.back());
      from.push_back(Variable(output.name));
      MTMC_ASSIGN_OR_RETURN(std::string target, Target(output));
      const auto place = places_.find(target);
      if (place == places_.end()) apart_.push_back(targets.size());
      targets.push_back(place == places_.end() ? std::move(target) : place->second);
    }
    for (const auto& [type, tensors] : copies) WriteCopies(tensors.first, tensors.second);
    Plan("return [", absl::StrJoin(returned, ", "), "]");
    Forward("targets = [", absl::StrJoin(targets, ", "), "]");
    Forward("if _mtmc_torch.compiler.is_compiling() or _mtmc_wants_gradients(inputs):");
    Forward("    results = _mtmc_operator(inputs, targets)");
    Forward("else:");
    Forward("    results = _mtmc_operator.run(inputs, targets)");
    for (const kernel::GraphInput& input : graph_.inputs) {
      if (input.kind != kernel::GraphInput::Kind::kConstant) leaves[input.name] = Source(input);
    }
    StructureWriter structure(leaves);
    Forward("return ", structure.Write(graph_.ResultOrDefault()));
    absl::StrAppend(&prepared_, structure.prepared());
    return absl::OkStatus();
  }

  // In few launches, however many tensors of one element type there are: a network in training
  // changes three buffers of each normalization.
  void WriteCopies(const std::vector<std::string>& to, const std::vector<std::string>& from) {
    if (to.size() == 1) {
      Plan(to.front(), ".copy_(", from.front(), ")");
    } else {
      Plan("_mtmc_copy([", absl::StrJoin(to, ", "), "], [", absl::StrJoin(from, ", "), "])");
    }
  }

  absl::StatusOr<std::string> Target(const kernel::GraphOutput& output) {
    if (output.kind == kernel::GraphOutput::Kind::kBufferMutation) {
      return modules_.Buffer(output.target, arguments_.First());
    }
    const kernel::GraphInput* input = graph_.FindInput(output.target);
    if (input == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the problem has no input '", output.target, "' to change"));
    }
    return Source(*input);
  }

  const kernel::Program& program_;
  const kernel::Graph& graph_;
  const kernel::Bindings& bindings_;
  const bool replays_;
  const ArgumentWriter arguments_;
  ModuleWriter modules_;
  // Of a tensor's expression in `inputs`.
  std::map<std::string, std::string> places_;
  // Targets that are no inputs, by number.
  std::vector<size_t> apart_;
  std::map<std::string, kernel::KernelSignature> kernels_;
  std::map<std::string, size_t> last_use_;
  // Whether a kernel may be running that the plan has not waited for.
  bool is_pending_ = false;
  // Variables that nothing needs once nothing runs, and their bytes.
  std::vector<std::string> ended_;
  int64_t ended_bytes_ = 0;
  // Made tensors that the plan has by now.
  std::set<std::string> existing_;
  std::vector<std::string> parameters_;
  std::vector<std::string> types_;
  std::vector<std::string> result_types_;
  // Of those results that kernels write, in a plan that is replayed.
  std::vector<std::string> made_types_;
  std::string prepared_;
  std::string plan_;
  std::string forward_;
};

}  // namespace

absl::StatusOr<std::string> WriteForward(const kernel::Program& program, const kernel::Graph& graph,
                                         const kernel::Bindings& bindings) {
  return ForwardWriter(program, graph, bindings).Write();
}

}  // namespace mtmc::client
