// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/checker.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/string_view.h"
#include "kernel/graph/operators.h"
#include "kernel/graph/text.h"
#include "kernel/program/plan_reads.h"
#include "kernel/program/signature.h"
#include "kernel/program/source_check.h"

namespace mtmc::kernel {
namespace {

// Grid limits of every CUDA device since compute capability 3.0. OpenCL sizes
// are bounded by size_t only; the same limits keep one plan valid for both.
constexpr int64_t kMaxGridX = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxGridYz = 65535;
constexpr int64_t kMaxBlockZ = 64;

// Whether a kernel that declares its elements as `scalar` may work on a tensor
// of `type`. Unsigned integers of the same width, and any integer vector, are
// raw bits; bytes of any sign hold a bool.
bool CanHold(const ScalarType& scalar, DataType type) {
  const bool is_unsigned_bits = scalar.kind == ScalarType::Kind::kUnsigned;
  if (scalar.kind == ScalarType::Kind::kFloating) return scalar.data_type == type;
  if (scalar.lanes > 1 && scalar.bytes * scalar.lanes >= 4)
    return !IsFloating(type) || scalar.bytes >= 4;
  if (scalar.bytes != SizeOf(type)) return false;
  return !IsFloating(type) || is_unsigned_bits;
}

// Range of the values that a scalar parameter can take.
bool Fits(int64_t value, const ScalarType& scalar) {
  switch (scalar.kind) {
    case ScalarType::Kind::kFloating:
      return true;
    case ScalarType::Kind::kBool:
      return value == 0 || value == 1;
    case ScalarType::Kind::kUnsigned:
      return value >= 0 && (scalar.bytes == 8 || value >> (8 * scalar.bytes) == 0);
    case ScalarType::Kind::kSigned:
      return scalar.bytes == 8 ||
             (value >> (8 * scalar.bytes - 1) == 0 || value >> (8 * scalar.bytes - 1) == -1);
  }
  return false;
}

// Walks a plan in execution order and keeps what has been written.
class PlanChecker {
 public:
  PlanChecker(const Program& program, const ProgramInterface& interface, const CheckLimits& limits,
              const Bindings& bindings)
      : program_(program), interface_(interface), limits_(limits), bindings_(bindings) {}

  std::vector<Diagnostic> Run() {
    if (program_.dialect == Dialect::kTriton && !limits_.allows_triton) {
      Report(1, "dialect triton is not supported by this worker");
      return std::move(diagnostics_);
    }
    for (const Tensor& tensor : program_.tensors) tensors_[tensor.name] = &tensor;
    CheckTensors();
    if (program_.dialect != Dialect::kTriton) ScanKernels();
    for (const Step& step : program_.steps) {
      if (const auto* launch = std::get_if<Launch>(&step)) {
        CheckLaunch(*launch);
      } else {
        CheckCall(std::get<LibraryCall>(step));
      }
    }
    CheckEnd();
    // Which step reads what is known only of a plan that fits its kernels.
    if (diagnostics_.empty()) CheckNeeded();
    return std::move(diagnostics_);
  }

 private:
  void ScanKernels() {
    for (Diagnostic& diagnostic : CheckSource(program_.text, program_.dialect)) {
      diagnostics_.push_back(std::move(diagnostic));
    }
    KernelScan scan = FindKernels(program_.text, program_.dialect);
    for (Diagnostic& diagnostic : scan.diagnostics) diagnostics_.push_back(std::move(diagnostic));
    has_unreadable_kernel_ = !scan.diagnostics.empty();
    for (KernelSignature& kernel : scan.kernels) {
      std::string name = kernel.name;
      kernels_.emplace(std::move(name), std::move(kernel));
    }
  }

  void CheckTensors() {
    int64_t buffer_bytes = 0;
    bool is_too_large = false;
    for (const Tensor& tensor : program_.tensors) {
      if (tensor.role == Tensor::Role::kBuffer) {
        is_too_large |= __builtin_add_overflow(buffer_bytes, tensor.type.bytes(), &buffer_bytes);
      } else {
        CheckInterface(tensor);
      }
      if (tensor.role == Tensor::Role::kInput || tensor.role == Tensor::Role::kWeight) {
        written_.insert(tensor.name);
      }
    }
    if (is_too_large || buffer_bytes > limits_.max_buffer_bytes) {
      Report(0, Concat("the buffers take ", is_too_large ? "over 2^63" : Concat(buffer_bytes),
                       " bytes, at most ", limits_.max_buffer_bytes));
    }
    for (const Tensor& output : interface_.outputs) {
      const auto it = tensors_.find(output.name);
      if (it == tensors_.end() || it->second->role != Tensor::Role::kOutput) {
        Report(0, Concat("declare `output ", output.name, " ", ToText(output.type), "`"));
      }
    }
  }

  void CheckInterface(const Tensor& tensor) {
    const Tensor* expected = nullptr;
    const auto find = [&](const std::vector<Tensor>& candidates) {
      for (const Tensor& candidate : candidates) {
        if (candidate.name == tensor.name) expected = &candidate;
      }
    };
    find(interface_.inputs);
    find(interface_.outputs);
    if (expected == nullptr) {
      Report(tensor.line, Concat("the problem has no ", ToText(tensor.role), " `", tensor.name, "`",
                                 KnownNames(tensor.role)));
    } else if (expected->role != tensor.role || expected->type != tensor.type) {
      Report(tensor.line, Concat("declare it as `", ToText(expected->role), " ", tensor.name, " ",
                                 ToText(expected->type), "`"));
    }
  }

  std::string KnownNames(Tensor::Role role) const {
    std::string text;
    const auto& known = role == Tensor::Role::kOutput ? interface_.outputs : interface_.inputs;
    for (const Tensor& tensor : known) {
      if (tensor.role != role || text.size() > 200) continue;
      Append(text, text.empty() ? "; it has " : ", ", tensor.name);
    }
    return text;
  }

  void CheckLaunch(const Launch& launch) {
    const std::optional<std::array<int64_t, 3>> grid = Evaluate(launch.grid, launch.line);
    const std::optional<std::array<int64_t, 3>> block = Evaluate(launch.block, launch.line);
    if (grid) CheckGrid(*grid, launch.line);
    if (block) CheckBlock(*block, launch.line);
    CheckShared(launch);
    for (const LaunchArgument& argument : launch.arguments) CheckScalarValue(argument, launch.line);
    if (program_.dialect == Dialect::kTriton) {
      TouchAll(launch);
      return;
    }
    const auto it = kernels_.find(launch.kernel);
    if (it == kernels_.end()) {
      if (!has_unreadable_kernel_) {
        Report(launch.line, Concat("there is no kernel `", launch.kernel, "` in the source"));
      }
      TouchAll(launch);
      return;
    }
    launched_.insert(launch.kernel);
    if (block) CheckBounds(it->second, *block, launch.line);
    CheckArguments(launch, it->second);
  }

  std::optional<std::array<int64_t, 3>> Evaluate(
      const std::array<IntegerExpression, 3>& expressions, int line) {
    std::array<int64_t, 3> values{};
    for (size_t i = 0; i < 3; ++i) {
      const absl::StatusOr<int64_t> value = expressions.at(i).Evaluate(bindings_);
      if (!value.ok()) {
        Report(line, value.status());
        return std::nullopt;
      }
      values.at(i) = *value;
    }
    return values;
  }

  void CheckGrid(const std::array<int64_t, 3>& grid, int line) {
    constexpr std::array<int64_t, 3> kLimits = {kMaxGridX, kMaxGridYz, kMaxGridYz};
    for (size_t i = 0; i < 3; ++i) {
      if (grid.at(i) < 1 || grid.at(i) > kLimits.at(i)) {
        Report(line,
               Concat("grid dimension ", i, " is ", grid.at(i), ", must be 1 to ", kLimits.at(i)));
      }
    }
  }

  void CheckBlock(const std::array<int64_t, 3>& block, int line) {
    int64_t threads = 1;
    for (size_t i = 0; i < 3; ++i) {
      const int64_t limit = i == 2 ? std::min(kMaxBlockZ, limits_.max_threads_per_block)
                                   : limits_.max_threads_per_block;
      if (block.at(i) < 1 || block.at(i) > limit) {
        return Report(line,
                      Concat("block dimension ", i, " is ", block.at(i), ", must be 1 to ", limit));
      }
      threads *= block.at(i);
    }
    if (threads > limits_.max_threads_per_block) {
      Report(line,
             Concat("a block has ", threads, " threads, at most ", limits_.max_threads_per_block));
    }
  }

  void CheckShared(const Launch& launch) {
    const absl::StatusOr<int64_t> bytes = launch.shared_bytes.Evaluate(bindings_);
    if (!bytes.ok()) return Report(launch.line, bytes.status());
    if (*bytes != 0 && program_.dialect == Dialect::kOpenCl) {
      return Report(launch.line,
                    "`shared=` is for cuda only; declare __local arrays inside the kernel");
    }
    if (*bytes < 0 || *bytes > limits_.max_shared_bytes) {
      Report(launch.line, Concat("shared memory is ", *bytes, " bytes, must be 0 to ",
                                 limits_.max_shared_bytes));
    }
  }

  void CheckScalarValue(const LaunchArgument& argument, int line) {
    const auto* expression = std::get_if<IntegerExpression>(&argument.value);
    if (expression == nullptr) return;
    const absl::StatusOr<int64_t> value = expression->Evaluate(bindings_);
    if (!value.ok()) Report(line, value.status());
  }

  // What the kernel itself promises about its block.
  void CheckBounds(const KernelSignature& kernel, const std::array<int64_t, 3>& block, int line) {
    // Bounds that use macros of the source cannot be known here.
    const auto evaluate = [&](const IntegerExpression& expression) -> std::optional<int64_t> {
      const absl::StatusOr<int64_t> value = expression.Evaluate(bindings_);
      return value.ok() ? std::optional<int64_t>(*value) : std::nullopt;
    };
    int64_t threads = 1;
    for (const int64_t extent : block) {
      // CheckBlock has reported blocks outside these limits.
      if (extent < 1 || extent > limits_.max_threads_per_block) return;
      threads *= extent;
    }
    if (kernel.max_threads) {
      const std::optional<int64_t> bound = evaluate(*kernel.max_threads);
      if (bound && threads > *bound) {
        Report(line, Concat("a block has ", threads, " threads but `", kernel.name,
                            "` declares __launch_bounds__(", *bound, ")"));
      }
    }
    if (!kernel.required_block) return;
    for (size_t i = 0; i < 3; ++i) {
      const std::optional<int64_t> required = evaluate(kernel.required_block->at(i));
      if (required && *required != block.at(i)) {
        Report(line, Concat("block dimension ", i, " is ", block.at(i), " but `", kernel.name,
                            "` requires ", *required));
      }
    }
  }

  void CheckArguments(const Launch& launch, const KernelSignature& kernel) {
    if (launch.arguments.size() != kernel.parameters.size()) {
      Report(launch.line, Concat("`", kernel.name, "` takes ", kernel.parameters.size(),
                                 " arguments, the launch has ", launch.arguments.size()));
      TouchAll(launch);
      return;
    }
    // Reads come before writes: a kernel may update a tensor in place only if
    // somebody has written it.
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      CheckArgument(launch, launch.arguments[i], kernel, i);
    }
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      const auto* name = std::get_if<std::string>(&launch.arguments[i].value);
      if (name != nullptr && !kernel.parameters[i].is_const) written_.insert(*name);
    }
  }

  void CheckArgument(const Launch& launch, const LaunchArgument& argument,
                     const KernelSignature& kernel, size_t index) {
    const KernelParameter& parameter = kernel.parameters[index];
    const std::string where = Concat("argument ", index + 1, " of `", kernel.name, "` (",
                                     parameter.name.empty() ? parameter.type : parameter.name, ")");
    const std::optional<ScalarType> scalar = FindScalarType(parameter.type);
    if (const auto* name = std::get_if<std::string>(&argument.value)) {
      CheckTensorArgument(*name, parameter, scalar, where, launch.line);
    } else if (parameter.is_pointer) {
      Report(launch.line, Concat(where, " is a pointer; pass a tensor"));
    } else if (!scalar || scalar->lanes != 1) {
      Report(launch.line, Concat(where, " has type `", parameter.type,
                                 "`, which a plan cannot pass; use a built-in scalar"));
    } else {
      CheckScalarArgument(argument, *scalar, where, launch.line);
    }
  }

  void CheckTensorArgument(const std::string& name, const KernelParameter& parameter,
                           const std::optional<ScalarType>& scalar, const std::string& where,
                           int line) {
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) return Report(line, Concat("`", name, "` is not declared"));
    const Tensor& tensor = *it->second;
    if (!parameter.is_pointer) {
      return Report(line, Concat(where, " is a scalar; `", name, "` is a tensor"));
    }
    if (!parameter.is_global) {
      return Report(line, Concat(where, " must be a __global pointer"));
    }
    // A type that the source defines itself may be anything.
    if (scalar && !CanHold(*scalar, tensor.type.data_type)) {
      Report(line, Concat(where, " points to `", parameter.type, "` but `", name, "` is ",
                          ToText(tensor.type)));
    }
    const bool is_read_only =
        tensor.role == Tensor::Role::kInput || tensor.role == Tensor::Role::kWeight;
    if (is_read_only && !parameter.is_const) {
      Report(line, Concat(where, " must point to const: ", ToText(tensor.role), " `", name,
                          "` is read only"));
    }
    if (parameter.is_const) CheckRead(name, line);
  }

  void CheckScalarArgument(const LaunchArgument& argument, const ScalarType& scalar,
                           const std::string& where, int line) {
    if (std::holds_alternative<double>(argument.value)) {
      if (scalar.kind != ScalarType::Kind::kFloating) {
        Report(line, Concat(where, " is an integer; pass a literal without a point"));
      }
      return;
    }
    const absl::StatusOr<int64_t> value =
        std::get<IntegerExpression>(argument.value).Evaluate(bindings_);
    // CheckScalarValue has reported what cannot be evaluated.
    if (value.ok() && !Fits(*value, scalar)) {
      Report(line, Concat(where, " cannot hold ", *value));
    }
  }

  // Where a launch cannot be matched to its kernel: assume that it writes what
  // it may, so that one mistake gives one diagnostic.
  void TouchAll(const Launch& launch) {
    for (const LaunchArgument& argument : launch.arguments) {
      if (const auto* name = std::get_if<std::string>(&argument.value)) written_.insert(*name);
    }
  }

  void CheckCall(const LibraryCall& call) {
    if (limits_.allowed_calls.find(call.op) == limits_.allowed_calls.end()) {
      Report(call.line, Concat("call of `", call.op, "` is not allowed in this job"));
    } else if (call.op.back() == '_') {
      Report(call.line, Concat("`", call.op, "` works in place; use the form without `_`"));
    }
    CheckSeed(call);
    for (const CallArgument& argument : call.arguments) CheckCallArgument(argument, call.line);
    for (const std::string& result : call.results) {
      if (result != "_") CheckWrite(result, call.line);
    }
  }

  // Without a seed random numbers would be those of whatever ran before.
  void CheckSeed(const LibraryCall& call) {
    const Operator* known = FindOperator(call.op);
    is_seeded_ |= std::any_of(call.arguments.begin(), call.arguments.end(),
                              [](const CallArgument& given) { return given.keyword == "seed"; });
    if (known != nullptr && known->use == Operator::Use::kRandom && !is_seeded_) {
      Report(call.line, Concat("`", call.op,
                               "` draws random numbers; the first such call must "
                               "name the job's seed, as in seed=0"));
    }
  }

  void CheckCallArgument(const CallArgument& argument, int line) {
    if (const auto* elements = std::get_if<std::vector<CallArgument>>(&argument.value)) {
      for (const CallArgument& element : *elements) CheckCallArgument(element, line);
    }
    const auto* tensor = std::get_if<CallArgument::TensorName>(&argument.value);
    if (tensor == nullptr) return;
    const auto declared = tensors_.find(tensor->name);
    if (declared == tensors_.end()) {
      return Report(line, Concat("`", tensor->name, "` is not declared"));
    }
    if (tensor->view && !LiesWithin(*tensor->view, declared->second->type.elements())) {
      Report(line, Concat("as_strided of `", tensor->name, "` reaches beyond its ",
                          declared->second->type.elements(), " elements"));
    }
    if (argument.keyword == "out" && tensor->view) {
      Report(line, Concat("`out=` takes a tensor, no part of `", tensor->name, "`"));
    } else if (argument.keyword == "out") {
      CheckWrite(tensor->name, line);
    } else {
      CheckRead(tensor->name, line);
    }
  }

  void CheckRead(const std::string& name, int line) {
    // Said once for each tensor.
    if (written_.insert(name).second) {
      Report(line, Concat("`", name, "` is read before anything has written it"));
    }
  }

  void CheckWrite(const std::string& name, int line) {
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) return Report(line, Concat("`", name, "` is not declared"));
    const Tensor::Role role = it->second->role;
    if (role == Tensor::Role::kInput || role == Tensor::Role::kWeight) {
      Report(line, Concat(ToText(role), " `", name, "` is read only"));
    }
    written_.insert(name);
  }

  void CheckEnd() {
    for (const Tensor& tensor : program_.tensors) {
      if (tensor.role == Tensor::Role::kOutput && written_.count(tensor.name) == 0) {
        Report(tensor.line, Concat("nothing writes output `", tensor.name, "`"));
      }
    }
    for (const auto& [name, kernel] : kernels_) {
      if (launched_.count(name) == 0) {
        Report(kernel.line, Concat("kernel `", name, "` is never launched; launch or remove it"));
      }
    }
  }

  // REQUIRES: `name` is one of the interface's inputs.
  Tensor::Role RoleOf(std::string_view name) const {
    for (const Tensor& input : interface_.inputs) {
      if (input.name == name) return input.role;
    }
    return Tensor::Role::kInput;
  }

  // What the graph computes an output from must be read by a step on the way to one.
  void CheckNeeded() {
    const PlanReads reads = FindReads(program_, kernels_);
    for (const NeededTensor& needed : interface_.needed) {
      if (reads.read.count(needed.name) > 0) continue;
      const Tensor* tensor = program_.FindTensor(needed.name);
      std::string text = Concat(ToText(RoleOf(needed.name)), " `", needed.name,
                                "` is needed by output `", needed.output, "`");
      if (needed.line > 0) Append(text, " (line ", needed.line, " of the problem)");
      const auto unread = reads.unread.find(needed.name);
      if (unread == reads.unread.end()) {
        Append(text, " and no step reads it; pass it to the step that computes with it");
      } else {
        Append(text, " and ", unread->second);
      }
      Report(tensor == nullptr ? 0 : tensor->line, std::move(text));
    }
  }

  void Report(int line, const absl::Status& status) {
    Report(line, std::string(base::ToStd(status.message())));
  }

  void Report(int line, std::string message) {
    diagnostics_.push_back({.line = line, .message = std::move(message)});
  }

  const Program& program_;
  const ProgramInterface& interface_;
  const CheckLimits& limits_;
  const Bindings& bindings_;

  std::map<std::string, const Tensor*, std::less<>> tensors_;
  KernelsByName kernels_;
  bool has_unreadable_kernel_ = false;
  std::set<std::string> launched_;
  // Tensors that hold something at the current step.
  std::set<std::string> written_;
  // Whether a call has named a seed.
  bool is_seeded_ = false;
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace

std::vector<Diagnostic> CheckProgram(const Program& program, const ProgramInterface& interface,
                                     const CheckLimits& limits, const Bindings& bindings) {
  return PlanChecker(program, interface, limits, bindings).Run();
}

}  // namespace mtmc::kernel
