// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernel/graph/tensor_type.h"
#include "kernel/program/expression.h"

namespace mtmc::kernel {

enum class Dialect { kOpenCl, kCuda, kTriton };

// A tensor the plan works on, declared by `input`, `weight`, `buffer` or
// `output`.
struct Tensor {
  enum class Role {
    kInput,   // forward argument, read only
    kWeight,  // parameter, model buffer or constant, read only
    kBuffer,  // scratch between steps
    kOutput,  // must be written completely
  };
  Role role = Role::kBuffer;
  std::string name;
  TensorType type;
  // Line of the directive, 1-based.
  int line = 0;
};

// `tune NAME = v1 v2 ...`: the worker builds the program with each value as a
// preprocessor constant NAME and keeps the fastest.
struct TuneParameter {
  std::string name;
  std::vector<int64_t> values;
};

// One argument of a launch: a tensor by name, or a scalar.
struct LaunchArgument {
  std::variant<std::string, IntegerExpression, double> value;
};

// `launch KERNEL grid=(x, y, z) block=(x, y, z) shared=BYTES args=(...)`. Expressions
// may use tune parameters and integer literals.
struct Launch {
  std::string kernel;
  std::array<IntegerExpression, 3> grid;
  std::array<IntegerExpression, 3> block;
  // Dynamic shared memory in bytes (CUDA only).
  IntegerExpression shared_bytes;
  std::vector<LaunchArgument> arguments;
  int line = 0;
};

struct NoneLiteral {};

// Elements of a tensor where they lie, as PyTorch's `as_strided` names them: element (i, j) is
// element offset + i * strides[0] + j * strides[1] of the row-major tensor. All in elements
// and not negative.
struct StridedView {
  std::vector<int64_t> shape;
  // One for each extent; 0 repeats elements.
  std::vector<int64_t> strides;
  int64_t offset = 0;

  bool operator==(const StridedView&) const = default;
};

// Whether all elements of the view are among those of a tensor that has `elements`.
bool LiesWithin(const StridedView& view, int64_t elements);

// One argument of a library call in PyTorch's notation: a tensor name, a
// literal, or a list of those.
struct CallArgument {
  // Keyword, or empty for a positional argument.
  std::string keyword;

  struct TensorName {
    std::string name;
    // The elements that the call reads; all, as they lie, without it.
    std::optional<StridedView> view;
  };

  std::variant<NoneLiteral, TensorName, int64_t, double, bool, std::string,
               std::vector<CallArgument>>
      value;
};

// `call aten::NAME[.OVERLOAD](args) -> r1, r2 [precision=tf32] [layout=channels_last]`. Results
// are bound, not copied: the named buffers and outputs take the storage the library returns.
struct LibraryCall {
  // Such as `aten::linear`.
  std::string op;
  // Such as `out`; empty lets the runner choose by the arguments.
  std::string overload;
  std::vector<CallArgument> arguments;
  // `_` drops a result.
  std::vector<std::string> results;
  // `default` is what PyTorch eager does (TF32 convolutions, FP32 matrix
  // products), `tf32` allows TF32 in both, `ieee` in neither.
  enum class Precision { kDefault, kTf32, kIeee };
  Precision precision = Precision::kDefault;
  // Results [N, C, ...] come as [N, ..., C], which is how a library that works with channels last
  // has them in memory.
  bool is_channels_last = false;
  int line = 0;
};

using Step = std::variant<Launch, LibraryCall>;

// The parsed text of a candidate: device source plus plan. Value type. The
// grammar and the checks are in `docs/program-format.md`.
struct Program {
  int version = 1;
  Dialect dialect = Dialect::kOpenCl;
  std::vector<Tensor> tensors;
  std::vector<TuneParameter> tune;
  // In execution order.
  std::vector<Step> steps;
  // Run the steps as one captured graph where the device can.
  bool has_capture = false;
  // The whole text, directives included: they are comments to the compiler.
  std::string text;

  const Tensor* FindTensor(std::string_view name) const;
};

// The words of the program format: `cuda`, `buffer`, `tf32`.
std::string_view ToText(Dialect dialect);
std::string_view ToText(Tensor::Role role);
std::string_view ToText(LibraryCall::Precision precision);

// Tune parameter values of one variant.
using Bindings = std::map<std::string, int64_t, std::less<>>;

// First value of every tune parameter.
Bindings DefaultBindings(const Program& program);

// Every combination of tune values, at most `limit`, the default one first.
std::vector<Bindings> Variants(const Program& program, int limit);

}  // namespace mtmc::kernel
