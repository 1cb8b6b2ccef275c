// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/contraction/contraction_template.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "kernel/algebra/scalar_key.h"
#include "kernel/graph/text.h"
#include "kernel/templates/contraction/contraction_knobs.h"
#include "kernel/templates/contraction/contraction_registers.h"
#include "kernel/templates/contraction/contraction_tiles.h"
#include "kernel/view/contraction_space.h"
#include "kernel/view/group_view.h"
#include "kernel/writer/kernel_writer.h"

namespace mtmc::kernel {
namespace {

// Width of a block: how often one loaded element is used per load.
constexpr double kReuse = 64;

// One thread per element of the result: a loop for every summation axis.
absl::StatusOr<EmittedStep> PrintNaive(const GroupView& view, const EmitTarget& target,
                                       const std::vector<std::string>& tuned) {
  const Loop& loop = *FindContraction(view);
  const std::string& result = loop.results[0];
  const TensorType& type = loop.types[0];
  KernelWriter writer(view, target, tuned, view.group->name);
  const DialectText& text = writer.text();
  writer.Reserve({"i"});
  for (const std::string& value : view.inputs) writer.AddParameter(value, /*is_written=*/false);
  for (const std::string& value : view.outputs) writer.AddParameter(value, /*is_written=*/true);

  const std::string block = writer.Knob("block");
  const ScalarPtr i = writer.DeclareThread(type.elements(), block);
  writer.Open(Concat("if (i < ", text.IntegerLiteral(type.elements(), DataType::kI64), ")"));
  std::vector<ScalarPtr> axes = IndicesOf(type, i, writer.extents());
  const std::string sum = writer.Fresh("sum");
  writer.Line(Concat(text.ComputeType(type.data_type), " ", sum, " = 0;"));
  const bool is_long = SpaceOf(loop).k > kLongestSum;
  const std::string stretch = is_long ? writer.Fresh("stretch") : sum;
  const std::string terms = is_long ? writer.Fresh("terms") : "";
  if (is_long) {
    writer.Line(Concat(text.ComputeType(type.data_type), " ", stretch, " = 0;"));
    writer.Line(Concat("int ", terms, " = 0;"));
  }
  size_t opened = 0;
  for (size_t axis = axes.size(); axis < loop.extents.size(); ++axis) {
    const int64_t extent = loop.extents[axis];
    if (extent == 1) {
      axes.push_back(kernel::Index(0));
      continue;
    }
    const std::string name = writer.Fresh(opened == 0 ? "k" : Concat("k", opened));
    axes.push_back(writer.Axis(name, extent));
    writer.Open(Concat("for (int ", name, " = 0; ", name, " < ", extent, "; ++", name, ")"));
    ++opened;
  }
  if (opened == 0) writer.Open("");
  const std::string lhs = writer.Body(loop.lhs, axes);
  const std::string rhs = writer.Body(loop.rhs, axes);
  writer.Line(Concat(stretch, " += ", lhs, " * ", rhs, ";"));
  if (is_long) {
    writer.Open(Concat("if (++", terms, " % ", kSumStretch, " == 0)"));
    writer.Line(Concat(sum, " += ", stretch, ";"));
    writer.Line(Concat(stretch, " = 0;"));
    writer.Close();
  }
  for (size_t level = 0; level < std::max<size_t>(opened, 1); ++level) writer.Close();
  if (is_long) writer.Line(Concat(sum, " += ", stretch, ";"));
  axes.resize(static_cast<size_t>(loop.output_axes()));
  writer.Bind(result, axes, sum);
  for (const std::string& value : view.outputs) {
    const std::vector<ScalarPtr> indices = IndicesOf(TypeOf(view, value), i, writer.extents());
    const std::string element = writer.Value(value, indices);
    writer.Store(value, indices, element);
  }
  writer.Close();
  return writer.Finish(
      {.grid = {Concat("ceil_div(", type.elements(), ", ", block, ")")}, .block = {block}});
}

// Whether element i of the output, in row-major order, needs exactly element i of the result.
bool IsElementwiseEpilogue(const GroupView& view, const Loop& contraction,
                           const std::string& output) {
  if (output == contraction.results[0]) return true;
  const TensorType& type = TypeOf(view, output);
  const int64_t elements = contraction.types[0].elements();
  if (!IsInlineMap(view, output) || type.elements() != elements) return false;
  const std::vector<int64_t> extents = {elements};
  const ScalarPtr i = Axis(0);
  const ScalarPtr root = Read(output, IndicesOf(type, i, extents), type.data_type);
  bool reads_result = false;
  for (const ElementRead& read : ElementReads(view, root, extents)) {
    if (read.tensor != contraction.results[0]) continue;
    if (read.is_guarded || KeyOf(read.offset) != KeyOf(SimplifyIndex(i, extents))) return false;
    reads_result = true;
  }
  return reads_result;
}

bool Accepts(const GroupView& view, const EmitTarget& /*target*/) {
  const Loop* contraction = FindContraction(view);
  if (contraction == nullptr || view.outputs.empty()) return false;
  if (contraction->types[0].elements() == 0) return false;
  for (const Loop* loop : view.loops) {
    if (loop != contraction && loop->form != Loop::Form::kMap) return false;
  }
  return std::all_of(view.outputs.begin(), view.outputs.end(), [&](const std::string& output) {
    return IsElementwiseEpilogue(view, *contraction, output);
  });
}

// Each factor is loaded, and its maps evaluated, once per block of the other side.
GroupCost CostOfGroup(const GroupView& view) {
  const ContractionSpace space = SpaceOf(*FindContraction(view));
  GroupCost cost = CostOfSweeps(view);
  cost.operations += OperationsOf(view, space, std::max(1.0, static_cast<double>(space.n) / kReuse),
                                  std::max(1.0, static_cast<double>(space.m) / kReuse));
  return cost;
}

absl::StatusOr<Emission> Print(const GroupView& view, const EmitTarget& target,
                               const std::vector<std::string>& tuned) {
  Emission emission;
  const bool is_cpu = target.is_cpu();
  const bool is_tiled = ContractionKnobTable().Read(view).tiled != 0;
  absl::StatusOr<EmittedStep> printed = !is_tiled || (is_cpu && !HasRegisterForm(view))
                                            ? PrintNaive(view, target, tuned)
                                        : is_cpu ? PrintRegisterContraction(view, target, tuned)
                                                 : PrintTiledContraction(view, target, tuned);
  MTMC_ASSIGN_OR_RETURN(EmittedStep step, std::move(printed));
  emission.steps.push_back(std::move(step));
  return emission;
}

}  // namespace

const KernelTemplate kContractionTemplate = {
    .name = "contraction",
    .keeps_knobs = true,
    .accepts = Accepts,
    .knobs = []() -> const KnobTable& { return ContractionKnobTable(); },
    .starting_knobs = StartingContractionKnobs,
    .cost = CostOfGroup,
    .print = Print,
};

}  // namespace mtmc::kernel
