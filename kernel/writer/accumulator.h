// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernel/loops/loop.h"
#include "kernel/writer/dialect_text.h"

namespace mtmc::kernel {

// The running state of one reduction as device text: what it keeps, how an
// element enters it and how two states become one. A state may live in scalars,
// lane arrays or shared memory: `Access` gives the text of a field where it is.
//
// Fields by combiner: arg keeps value and index; Welford mean, squared deviations
// and count; online softmax maximum and sum; all others one value.
class Accumulator {
 public:
  struct Field {
    // Suffix for variable names: empty for the first.
    std::string suffix;
    std::string type;
    DataType data_type = DataType::kF32;
    // Value of the empty state.
    std::string empty;
  };

  using Access = std::function<std::string(size_t field)>;

  // REQUIRES: the loop is a reduction.
  Accumulator(const Loop& loop, DialectText text);

  const Loop& loop() const { return *loop_; }

  const std::vector<Field>& fields() const { return fields_; }

  bool is_welford() const { return loop_->combiner == Combiner::kWelford; }

  bool needs_index() const;

  // Whether it adds floating-point numbers up, so that its rounding grows with their count.
  bool is_running_sum() const;

  // What an element brings with it.
  struct Element {
    std::string value;
    // Its row-major position among the reduced elements, for arg combiners.
    std::string index;
    // Reciprocal of the count after it, for Welford. The count field itself is the
    // caller's: lanes in step share one.
    std::string inverse_count;
  };

  // Statements that add an element to the state at `to`.
  std::vector<std::string> Add(const Access& to, const Element& element) const;
  // Statements that add the state at `from` to the one at `to`; scoped by the
  // caller. `to` must not alias `from`.
  std::vector<std::string> Merge(const Access& to, const Access& from) const;

 private:
  std::string Exp(const std::string& operand) const;
  std::string Abs(const std::string& operand) const;
  std::string IsBetter(const std::string& value, const std::string& index, const Access& to) const;

  const Loop* loop_;
  DialectText text_;
  DataType type_;
  std::vector<Field> fields_;
};

}  // namespace mtmc::kernel
