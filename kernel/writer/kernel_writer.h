// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/algebra/index_algebra.h"
#include "kernel/view/emit_target.h"
#include "kernel/view/group_view.h"
#include "kernel/writer/dialect_text.h"
#include "kernel/writer/emission.h"

namespace mtmc::kernel {

// `LINEAR_1_BLOCK`: the macro and tune parameter of a group's knob.
std::string KnobMacro(std::string_view group, std::string_view knob);

// Prints one kernel of a group, statement by statement, in either dialect.
//
//   KernelWriter writer(view, target, tuned, "gelu");
//   writer.AddParameter("x", /*is_written=*/false);
//   writer.AddParameter("y", /*is_written=*/true);
//   ScalarPtr i = writer.Declare("i", n, writer.text().BlockId(0) + " * 256 + ...");
//   writer.Open("if (i < n)");
//   writer.Store("y", {i}, writer.Value("y", {i}));
//   writer.Close();
//   return writer.Finish({.grid = {"ceil_div(n, 256)"}, .block = {"256"}});
//
// Indices are scalar expressions over the writer's *axes*: integer variables of
// the kernel with a known extent. A loop's own axes never appear here: asking
// for `Value(tensor, indices)` substitutes them. Values computed inside the
// group become locals named after the graph's values, once per scope and set
// of indices. Not thread-safe; one writer per kernel.
class KernelWriter {
 public:
  // `tuned` lists the knobs printed as macros. The view must outlive the writer.
  KernelWriter(const GroupView& view, const EmitTarget& target, std::vector<std::string> tuned,
               const std::string& name);

  const DialectText& text() const { return text_; }

  const std::string& name() const { return name_; }

  const std::vector<int64_t>& extents() const { return extents_; }

  // The knob's value as text: a literal, or the macro GROUP_KNOB when tuned.
  std::string Knob(std::string_view knob) const;

  // Adds a tensor to the signature; its type is that of the nest's value, or
  // `type` for scratch of the group.
  void AddParameter(const std::string& tensor, bool is_written);
  void AddParameter(const std::string& tensor, const TensorType& type, bool is_written);

  // Whether the kernel may load elements of the tensor.
  bool IsReadable(const std::string& tensor) const;

  // Makes the C variable `name`, declared by the caller's own text, known as an
  // axis with values 0 .. extent - 1.
  ScalarPtr Axis(const std::string& name, int64_t extent);
  // Prints `const int name = definition;` (long when the extent asks for it) and
  // returns it as an axis.
  ScalarPtr Declare(const std::string& name, int64_t extent, std::string_view definition);

  // The thread's number in the whole grid of blocks of `block` threads, as the axis `i`.
  ScalarPtr DeclareThread(int64_t extent, std::string_view block);

  // One line of code at the present depth. Open prints `head {` and starts a
  // scope; Close ends it. Unroll goes before an Open of a constant loop.
  void Line(std::string_view code);
  void Open(std::string_view head);
  void Close();
  void Comment(std::string_view comment);

  void Barrier() { Line(text_.Barrier()); }

  void Unroll() { Line(text_.UnrollPragma()); }

  // Keeps these names for the caller's own text. Call before AddParameter.
  void Reserve(std::initializer_list<std::string_view> names);
  // An identifier close to `wish` that nothing in this kernel uses.
  std::string Fresh(std::string_view wish);

  // Text of an index expression; quotients and remainders become locals.
  std::string Index(const ScalarPtr& index);
  // Text of an element of `tensor`: a bound text, a local that holds the value
  // of a map of the group, or one that holds the element loaded from memory.
  // REQUIRES: a value of the group that is no map has been bound.
  std::string Value(const std::string& tensor, std::span<const ScalarPtr> indices);
  // Text of any expression over the writer's axes, reads included.
  std::string Print(const ScalarPtr& expression);
  // `loop.body` (or `lhs`, `rhs`) with its axes replaced by `axes`.
  std::string Body(const ScalarPtr& body, std::span<const ScalarPtr> axes);

  // In the present scope, `tensor` at these indices is `text`; without indices,
  // at any: for accumulators, where all axes are fixed or reduced.
  void Bind(const std::string& tensor, std::span<const ScalarPtr> indices, std::string text);
  void Bind(const std::string& tensor, std::string text);

  // Prints the store of `value` to an output or scratch parameter.
  void Store(const std::string& tensor, std::span<const ScalarPtr> indices, std::string_view value);

  // Prints `float array[lanes]` filled with consecutive elements from `offset`, and the store of
  // such an array. `lanes` is 2, 4, 8 or 16 and divides the offset.
  void LoadVector(const std::string& array, const std::string& tensor, const ScalarPtr& offset,
                  int lanes);
  void StoreVector(const std::string& tensor, const ScalarPtr& offset, const std::string& array,
                   int lanes);

  struct LaunchText {
    // Plan expressions; missing dimensions are 1. They may name GROUP_KNOB macros.
    std::vector<std::string> grid;
    std::vector<std::string> block;
    std::string shared_bytes = "0";
    // User's lines in the kernel's comment; empty for those of the whole group.
    std::vector<std::string> nodes;
  };

  // The finished kernel. Call once.
  absl::StatusOr<EmittedStep> Finish(const LaunchText& launch);

 private:
  struct Scope {
    std::map<std::string, std::string> values;  // key of tensor and offset to text
    std::map<std::string, std::string> any;     // tensor to text at any indices
    std::map<std::string, std::string> locals;  // key of a subexpression to its local
  };

  struct Parameter {
    std::string tensor;
    std::string name;
    TensorType type;
    bool is_written = false;
  };

  // Text with the precedence of its outermost operator, larger binds tighter.
  struct Piece {
    std::string text;
    int precedence = 0;
  };

  const TensorType& TypeOf(const std::string& tensor) const;
  const Parameter* FindParameter(const std::string& tensor) const;
  const std::string* FindBound(const std::string& tensor, const std::string& key) const;
  const std::string* FindLocal(const std::string& key) const;
  std::string ValueKey(const std::string& tensor, std::span<const ScalarPtr> indices) const;
  std::string PrintNamed(const ScalarPtr& expression, const std::string& wish);
  std::string PrintGuarded(const Scalar& select, const std::string& wish);
  Piece PrintPiece(const ScalarPtr& expression);
  Piece PrintOperator(const ScalarPtr& expression);
  Piece PrintCall(const Scalar& expression);
  Piece PrintIndexDivision(const ScalarPtr& expression);
  Piece Wrapping(const Scalar& expression, std::string_view symbol);
  Piece Infix(const Scalar& expression, std::string_view symbol, int precedence);
  std::string Operand(const ScalarPtr& expression, int min_precedence);
  bool MayWrap(const Scalar& expression) const;
  bool IsLong(const ScalarPtr& expression) const;
  bool NeedsGuard(const ScalarPtr& expression) const;
  std::string TypeText(const ScalarPtr& expression) const;

  const GroupView& view_;
  EmitTarget target_;
  DialectText text_;
  std::vector<std::string> tuned_;
  std::string name_;
  std::vector<Parameter> parameters_;
  std::vector<std::string> axis_names_;
  std::vector<int64_t> extents_;
  std::vector<Scope> scopes_;
  std::set<std::string, std::less<>> names_;
  std::set<std::string, std::less<>> reserved_;
  // Nodes that the body being printed uses more than once.
  std::set<const Scalar*> shared_;
  // What a helper local of the value being printed is named after.
  std::string wish_ = "t";
  // Whether the index of an element is being printed.
  bool is_index_ = false;
  std::string body_;
};

}  // namespace mtmc::kernel
