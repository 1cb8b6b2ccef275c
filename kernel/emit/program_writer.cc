// SPDX-License-Identifier: Apache-2.0
#include "kernel/emit/program_writer.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "kernel/graph/text.h"
#include "kernel/program/interface.h"
#include "kernel/program/printer.h"
#include "kernel/rewrite/rewrite.h"
#include "kernel/templates/template_registry.h"
#include "kernel/writer/device_functions.h"
#include "kernel/writer/kernel_writer.h"
#include "kernel/writer/safe_name.h"

namespace mtmc::kernel {
namespace {

// Collects the parts of one program.
class ProgramWriter {
 public:
  ProgramWriter(const Graph& graph, const LoopNest& nest, const NestIndex& index,
                const Schedule& schedule, const EmitTarget& target)
      : graph_(graph), nest_(nest), index_(index), schedule_(schedule), target_(target) {
    program_.dialect = target.dialect;
    program_.has_capture = schedule.has_capture;
  }

  absl::StatusOr<std::string> Write() {
    NameTensors();
    for (const KernelGroup& group : schedule_.groups) {
      MTMC_RETURN_IF_ERROR(WriteGroup(group));
    }
    MTMC_RETURN_IF_ERROR(WriteCopies());
    MTMC_RETURN_IF_ERROR(CheckOutputs());
    DeclareTensors();
    return Assemble();
  }

 private:
  // Program tensors that hold graph values: inputs under their own names, the first output of a
  // value under the output's. Everything else becomes a buffer when it is first written.
  void NameTensors() {
    for (const GraphInput& input : graph_.inputs) {
      tensor_of_[input.name] = input.name;
      available_.insert(input.name);
      taken_.insert(input.name);
    }
    for (const GraphOutput& output : graph_.outputs) {
      taken_.insert(output.name);
      tensor_of_.emplace(output.value, output.name);
    }
  }

  absl::Status WriteGroup(const KernelGroup& group) {
    for (const std::string& node : group.nodes) {
      if (index_.PositionOf(node) < 0) {
        return absl::InvalidArgumentError(
            Concat("schedule names \"", node, "\", which is no node of the graph"));
      }
    }
    GroupView view = ViewOf(graph_, nest_, index_, group);
    MTMC_RETURN_IF_ERROR(CheckGroup(view, target_, schedule_.TuneOf(group.name)));
    const KernelGroup complete = WithAllKnobs(view, target_);
    view.group = &complete;
    absl::StatusOr<Emission> emission =
        TemplateOf(complete).print(view, target_, TunedKnobs(group));
    if (!emission.ok()) {
      return base::Annotate(emission.status(), Concat("in group \"", group.name, "\""));
    }
    for (Tensor& buffer : emission->buffers) {
      // A copy that an earlier group made of the same value is as good.
      tensor_of_[buffer.name] = Buffer(buffer.name, buffer.type);
    }
    for (EmittedStep& step : emission->steps) {
      MTMC_RETURN_IF_ERROR(AddStep(std::move(step)));
    }
    for (const std::string& value : view.outputs) available_.insert(value);
    return absl::OkStatus();
  }

  std::vector<std::string> TunedKnobs(const KernelGroup& group) {
    std::vector<std::string> tuned;
    for (const auto& [knob, values] : schedule_.TuneOf(group.name)) {
      tuned.push_back(knob);
      program_.tune.push_back({.name = KnobMacro(group.name, tuned.back()), .values = values});
    }
    return tuned;
  }

  // Name of a scratch tensor for `value`, declared on first use.
  std::string Buffer(const std::string& value, const TensorType& type) {
    std::string name = value;
    for (int suffix = 2; taken_.contains(name); ++suffix) name = Concat(value, "_", suffix);
    taken_.insert(name);
    buffers_.push_back({.role = Tensor::Role::kBuffer, .name = name, .type = type});
    return name;
  }

  // Program tensor of a graph value that a step names.
  const std::string& TensorOf(const std::string& value) {
    const auto found = tensor_of_.find(value);
    if (found != tensor_of_.end()) return found->second;
    return tensor_of_[value] = Buffer(value, nest_.types.find(value)->second);
  }

  absl::Status AddStep(EmittedStep step) {
    if (auto* launch = std::get_if<Launch>(&step.step)) {
      launch->kernel = UniqueKernel(launch->kernel, step.source);
      for (LaunchArgument& argument : launch->arguments) {
        if (auto* tensor = std::get_if<std::string>(&argument.value)) Use(*tensor);
      }
    } else {
      auto& call = std::get<LibraryCall>(step.step);
      UseAll(call.arguments);
      for (std::string& result : call.results) {
        if (result != "_") Use(result);
      }
    }
    kernels_ += Concat(step.source, step.source.empty() ? "" : "\n");
    functions_.insert(step.functions.begin(), step.functions.end());
    program_.steps.push_back(std::move(step.step));
    return absl::OkStatus();
  }

  // Two groups whose names differ only in what identifiers may not hold.
  std::string UniqueKernel(const std::string& name, std::string& source) {
    if (kernel_names_.insert(name).second) return name;
    std::string unique = name;
    for (int suffix = 2; !kernel_names_.insert(unique).second; ++suffix) {
      unique = Concat(name, "_", suffix);
    }
    const std::string head = " " + name + "(";
    const size_t position = source.find(head);
    if (position != std::string::npos) source.replace(position, head.size(), " " + unique + "(");
    return unique;
  }

  void Use(std::string& tensor) {
    tensor = TensorOf(tensor);
    used_.insert(tensor);
  }

  void UseAll(std::vector<CallArgument>& arguments) {
    for (CallArgument& argument : arguments) {
      if (auto* tensor = std::get_if<CallArgument::TensorName>(&argument.value)) {
        Use(tensor->name);
      } else if (auto* list = std::get_if<std::vector<CallArgument>>(&argument.value)) {
        UseAll(*list);
      }
    }
  }

  // Outputs that equal an input or another output.
  absl::Status WriteCopies() {
    for (const GraphOutput& output : graph_.outputs) {
      const std::string& source = TensorOf(output.value);
      if (source == output.name) continue;
      const KernelGroup group{.name = "copy_" + output.name};
      const GroupView view{.graph = &graph_, .nest = &nest_, .group = &group};
      KernelWriter writer(view, target_, {}, group.name);
      writer.Reserve({"i"});
      writer.AddParameter(output.value, output.type, /*is_written=*/false);
      writer.AddParameter(output.name, output.type, /*is_written=*/true);
      const int64_t elements = output.type.elements();
      const DialectText& text = writer.text();
      const ScalarPtr i =
          writer.Declare("i", elements, Concat(text.BlockId(0), " * 256 + ", text.ThreadId(0)));
      writer.Open(Concat("if (i < ", text.IntegerLiteral(elements, DataType::kI64), ")"));
      const std::vector<ScalarPtr> indices = IndicesOf(output.type, i, writer.extents());
      writer.Store(output.name, indices, writer.Value(output.value, indices));
      writer.Close();
      MTMC_ASSIGN_OR_RETURN(
          EmittedStep step,
          writer.Finish({.grid = {Concat("ceil_div(", std::max<int64_t>(elements, 1), ", 256)")},
                         .block = {"256"}}));
      step.source = Concat("// ", output.name, " equals ", source, ".\n", step.source);
      tensor_of_[output.name] = output.name;
      MTMC_RETURN_IF_ERROR(AddStep(std::move(step)));
    }
    return absl::OkStatus();
  }

  absl::Status CheckOutputs() const {
    for (const GraphOutput& output : graph_.outputs) {
      if (!available_.contains(output.value)) {
        return absl::InvalidArgumentError(
            Concat("no group computes the output \"", output.name, "\""));
      }
    }
    return absl::OkStatus();
  }

  void DeclareTensors() {
    const ProgramInterface interface = FromGraph(graph_);
    for (const Tensor& input : interface.inputs) {
      if (used_.contains(input.name)) program_.tensors.push_back(input);
    }
    program_.tensors.insert(program_.tensors.end(), buffers_.begin(), buffers_.end());
    program_.tensors.insert(program_.tensors.end(), interface.outputs.begin(),
                            interface.outputs.end());
  }

  std::string Assemble() const {
    std::string text = PrintDirectives(program_) + "\n";
    for (const RewriteStep& step : schedule_.rewrites) {
      text += Concat("// Simplified at ", step.node, ": ", FindRewrite(step.rewrite)->summary,
                     " (exact but for rounding).\n");
    }
    if (!schedule_.rewrites.empty()) text += "\n";
    const std::string code = DeviceFunctions(functions_, target_.dialect) + kernels_;
    const auto uses = [&code](std::string_view word) {
      return code.find(word) != std::string::npos;
    };
    if (target_.dialect == Dialect::kCuda) {
      if (uses("__half")) text += "#include <cuda_fp16.h>\n";
      if (uses("__nv_bfloat16")) text += "#include <cuda_bf16.h>\n";
      // NVRTC knows no <math.h>.
      if (uses("INFINITY")) text += "#define INFINITY __int_as_float(0x7f800000)\n";
      if (uses("NAN")) text += "#define NAN __int_as_float(0x7fffffff)\n";
    } else if (uses("double")) {
      text += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
    }
    if (text.back() == '\n' && text[text.size() - 2] != '\n') text += "\n";
    text += code;
    while (text.size() > 1 && text[text.size() - 2] == '\n') text.pop_back();
    return text;
  }

  const Graph& graph_;
  const LoopNest& nest_;
  const NestIndex& index_;
  const Schedule& schedule_;
  const EmitTarget& target_;
  Program program_;
  std::map<std::string, std::string> tensor_of_;
  std::set<std::string> available_;
  std::set<std::string> taken_;
  std::set<std::string> used_;
  std::set<std::string> kernel_names_;
  std::set<std::string> functions_;
  std::vector<Tensor> buffers_;
  std::string kernels_;
};

}  // namespace

absl::StatusOr<std::string> WriteProgram(const Graph& graph, const LoopNest& nest,
                                         const NestIndex& index, const Schedule& schedule,
                                         const EmitTarget& target) {
  return ProgramWriter(graph, nest, index, schedule, target).Write();
}

}  // namespace mtmc::kernel
