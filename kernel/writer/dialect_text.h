// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernel/graph/tensor_type.h"
#include "kernel/loops/scalar.h"
#include "kernel/program/program.h"

namespace mtmc::kernel {

// The C family text of one dialect: the only place that knows how CUDA C++ and
// OpenCL C differ. Texts only, no state; cheap value. REQUIRES: the dialect is
// kCuda or kOpenCl.
//
// A value of type f16 or bf16 is stored in 16 bits and computed with as float.
class DialectText {
 public:
  explicit DialectText(Dialect dialect) : dialect_(dialect) {}

  Dialect dialect() const { return dialect_; }

  bool is_cuda() const { return dialect_ == Dialect::kCuda; }

  // Type of an element in memory: `float`, `__half`, `unsigned char`.
  std::string StorageType(DataType type) const;
  // Type of a local variable that holds such an element: f16 gives `float`.
  std::string ComputeType(DataType type) const;
  // `const float* __restrict__ x` or `__global const float* restrict x`.
  std::string Parameter(std::string_view name, DataType type, bool is_written) const;
  // Everything before the parameter list; `threads` is an expression.
  std::string KernelHead(std::string_view name, std::string_view threads) const;

  // Dimension 0, 1 or 2.
  std::string ThreadId(int dimension) const;
  std::string BlockId(int dimension) const;
  std::string GridSize(int dimension) const;
  // Statement; waits for all threads of the block and makes their shared
  // writes visible.
  std::string Barrier() const;
  // Statement that declares an array of the block; REQUIRES: at kernel scope.
  std::string SharedArray(std::string_view type, std::string_view name,
                          std::string_view count) const;
  // Value of `variable` in the lane `offset` above (or with bit `mask`
  // exchanged). CUDA only.
  std::string ShuffleDown(std::string_view variable, std::string_view offset) const;
  std::string ShuffleXor(std::string_view variable, std::string_view mask) const;
  // Line before a loop with a constant trip count.
  std::string UnrollPragma() const;
  // Keyword of a helper function: `__device__ __forceinline__` or `inline`.
  std::string FunctionQualifier() const;

  // One element of memory as a value, and the statement that stores one.
  // `offset` is an expression of any precedence.
  std::string Load(std::string_view tensor, DataType type, std::string_view offset) const;
  std::string Store(std::string_view tensor, DataType type, std::string_view offset,
                    std::string_view value) const;
  // `0.5f`, `-INFINITY`, `3`, `5000000000LL`, `true`.
  std::string FloatLiteral(double value, DataType type) const;
  std::string IntegerLiteral(int64_t value, DataType type) const;

  // `operand` converted with PyTorch's rules; f16 and bf16 round.
  std::string Cast(std::string_view operand, DataType from, DataType to) const;

 private:
  Dialect dialect_;
};

}  // namespace mtmc::kernel
