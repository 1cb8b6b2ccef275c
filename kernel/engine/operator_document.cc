// SPDX-License-Identifier: Apache-2.0
#include "kernel/engine/operator_document.h"

#include <set>
#include <string_view>
#include <vector>

#include "kernel/graph/operators.h"
#include "kernel/graph/text.h"
#include "kernel/loops/op_table.h"

namespace mtmc::kernel {
namespace {

constexpr std::string_view kHead = R"(# Operators of programs

What `forward` does is traced to ATen operators. Each is computed by kernels of ours, by a library call, or by either, as the search finds
faster. This page is printed by `mtmc-engine operators`; the table behind it, `kernel/graph/operators.inc`, is written by
`scripts/operators` from the schemas of the installed PyTorch. Tests keep both as they are said here.

An operator **may be called** when it computes new dense tensors of real types from its arguments and does nothing else. So these may not:

- those that work in place, or write to an argument: a trace has none, for each value is defined once;
- those that return the memory of their argument. Their copying form (`aten::select_copy` for `aten::select`) is called instead;
- those that return memory nobody has written (`aten::empty`), which may hold what others left there;
- those that read files, or ask for something else than elements (`aten::item`);
- internal ones (`aten::_unsafe_index`), which trust what their callers have checked, but for some that traces leave and that check themselves;
- those on sparse, quantized, nested, complex or named tensors, and those of one vendor's library.

Operators that **draw random numbers** continue PyTorch's generator, which the first such call of a plan sets to its `seed=`. The reference
starts every run from the seed of the job, and draws in the same order.

A network that needs an operator which has neither a kernel nor a call is refused with the line that needs it. Operators that are traced
as others (`aten::contiguous`, `aten::detach`) take no step at all.
)";

// Longest line of a list.
constexpr size_t kWidth = 140;

using Names = std::set<std::string>;

void AppendList(const Names& names, std::string_view title, std::string_view meaning,
                std::string& text) {
  Append(text, "\n## ", title, " (", names.size(), ")\n\n", meaning, "\n\n");
  std::string line;
  for (const std::string& name : names) {
    const std::string word = Concat("`", name, "`");
    if (!line.empty() && line.size() + word.size() + 1 > kWidth) {
      Append(text, line, "\n");
      line.clear();
    }
    Append(line, line.empty() ? "" : " ", word);
  }
  Append(text, line, "\n");
}

}  // namespace

std::string OperatorDocument() {
  Names both, calls, kernels, random, never;
  std::set<std::string, std::less<>> known;
  for (const Operator& row : Operators()) {
    const std::string name(row.name.substr(row.name.find("::") + 2));
    known.insert(name);
    const bool is_lowered = Lowerings().contains(name);
    if (row.use == Operator::Use::kRandom) {
      random.insert(name);
    } else if (row.is_callable() || !row.copy.empty()) {
      (is_lowered ? both : calls).insert(name);
    } else {
      (is_lowered ? kernels : never).insert(name);
    }
  }
  for (const auto& [name, lower] : Lowerings()) {
    // Those of our own stand in no trace.
    if (!known.contains(name) && !name.ends_with("channels_last")) kernels.insert(name);
  }
  std::string text(kHead);
  AppendList(both, "Kernels of ours, or a call",
             "Where a lowering does not take the arguments, a call is left.", text);
  AppendList(calls, "Calls only", "A step of its own, with which no kernel is fused.", text);
  AppendList(kernels, "Kernels of ours only",
             "Mostly views, which are index arithmetic of their readers.", text);
  AppendList(random, "Calls that draw random numbers",
             "Recurrent layers and attention draw where their dropout is not 0.", text);
  AppendList(never, "Neither", "A network that needs one is refused.", text);
  return text;
}

}  // namespace mtmc::kernel
