// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/contraction_family.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "kernel/algebra/scalar_key.h"
#include "kernel/graph/text.h"
#include "kernel/templates/contraction_registers.h"
#include "kernel/templates/contraction_tiles.h"
#include "kernel/view/contraction_space.h"
#include "kernel/view/group_view.h"
#include "kernel/writer/kernel_writer.h"

namespace mtmc::kernel {
namespace {

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
  const std::string wide =
      type.elements() > INT32_MAX ? "(" + text.ComputeType(DataType::kI64) + ")" : "";
  const ScalarPtr i = writer.Declare(
      "i", type.elements(), Concat(wide, text.BlockId(0), " * ", block, " + ", text.ThreadId(0)));
  writer.Open(Concat("if (i < ", text.IntegerLiteral(type.elements(), DataType::kI64), ")"));
  std::vector<ScalarPtr> axes = IndicesOf(type, i, writer.extents());
  const std::string sum = writer.Fresh("sum");
  writer.Line(Concat(text.ComputeType(type.data_type), " ", sum, " = 0;"));
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
  writer.Line(Concat(sum, " += ", lhs, " * ", rhs, ";"));
  for (size_t level = 0; level < std::max<size_t>(opened, 1); ++level) writer.Close();
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

class ContractionFamilyImplementation final : public Family {
 public:
  FamilyKind kind() const override { return FamilyKind::kContraction; }

  bool Accepts(const GroupView& view) const override {
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

  Knobs DefaultKnobs(const GroupView&, const EmitTarget& target) const override {
    return {{"tiled", 0}, {"block", std::min<int64_t>(target.max_threads_per_block, 256)},
            {"bm", 64},   {"bn", 64},
            {"bk", 16},   {"tm", 4},
            {"tn", 4},    {"tr", 4},
            {"tc", 4}};
  }

  std::vector<KnobMove> Moves(const GroupView& view, const EmitTarget& target) const override {
    if (target.is_cpu()) return RegisterMoves(view);
    const ContractionSpace space = SpaceOf(*FindContraction(view));
    std::vector<KnobMove> moves;
    for (const Tile& tile : kTiles) {
      const bool is_present = IsTiled(view) && KnobOf(view, "bm") == tile.bm &&
                              KnobOf(view, "bn") == tile.bn && KnobOf(view, "tm") == tile.tm;
      // Blocks twice as large as the matrix waste half of their work.
      const bool fits = tile.bm < 2 * std::max<int64_t>(space.m, 32) &&
                        tile.bn < 2 * std::max<int64_t>(space.n, 32);
      if (is_present || !fits) continue;
      KnobMove move{.action = "tile",
                    .text = Concat("to ", tile.bm, "x", tile.bn, " blocks with ", tile.tm, "x",
                                   tile.tn, " micro-tiles"),
                    .knobs = view.group->knobs};
      move.knobs["tiled"] = 1;
      move.knobs["bm"] = tile.bm;
      move.knobs["bn"] = tile.bn;
      move.knobs["bk"] = tile.bk;
      move.knobs["tm"] = tile.tm;
      move.knobs["tn"] = tile.tn;
      moves.push_back(std::move(move));
    }
    return moves;
  }

  std::vector<KnobSweep> Sweeps(const GroupView& view, const EmitTarget& target) const override {
    if (IsTiled(view) && target.is_cpu()) return {};
    if (!IsTiled(view)) {
      return {SweepOf(view, "block", {64, 128, 256, 512}, target.max_threads_per_block)};
    }
    return {SweepOf(view, "bm", {64, 128}, 256), SweepOf(view, "bn", {64, 128}, 256),
            SweepOf(view, "bk", {8, 16, 32}, 32)};
  }

  absl::StatusOr<Emission> Emit(const GroupView& view, const EmitTarget& target,
                                const std::vector<std::string>& tuned) const override {
    Emission emission;
    const bool is_cpu = target.is_cpu();
    absl::StatusOr<EmittedStep> printed = !IsTiled(view) || (is_cpu && !HasRegisterForm(view))
                                              ? PrintNaive(view, target, tuned)
                                          : is_cpu ? PrintRegisterContraction(view, target, tuned)
                                                   : PrintTiledContraction(view, target, tuned);
    MTMC_ASSIGN_OR_RETURN(EmittedStep step, std::move(printed));
    emission.steps.push_back(std::move(step));
    return emission;
  }

 private:
  struct Tile {
    int64_t bm;
    int64_t bn;
    int64_t bk;
    int64_t tm;
    int64_t tn;
  };

  // 256 threads with 64 sums each come near the FP32 peak; smaller blocks fill the device when
  // the matrix is small, and flat ones fit narrow matrices.
  static constexpr Tile kTiles[] = {{128, 128, 16, 8, 8}, {64, 64, 16, 4, 4}, {128, 64, 16, 8, 4},
                                    {64, 128, 16, 4, 8},  {32, 64, 32, 4, 4}, {64, 32, 32, 4, 4}};

  static int64_t KnobOf(const GroupView& view, std::string_view knob) {
    return view.group->knobs.find(knob)->second;
  }

  static bool IsTiled(const GroupView& view) { return KnobOf(view, "tiled") != 0; }

  // Sums in vector registers: 16 of them leave room for the factors.
  static std::vector<KnobMove> RegisterMoves(const GroupView& view) {
    std::vector<KnobMove> moves;
    if (!HasRegisterForm(view)) return moves;
    for (const auto& [rows, columns] : {std::pair{4, 4}, {4, 2}, {2, 4}, {6, 2}}) {
      const bool is_present =
          IsTiled(view) && KnobOf(view, "tr") == rows && KnobOf(view, "tc") == columns;
      if (is_present) continue;
      KnobMove move{.action = "tile",
                    .text = Concat("to ", rows, "x", columns, " sums in vector registers"),
                    .knobs = view.group->knobs};
      move.knobs["tiled"] = 1;
      move.knobs["tr"] = rows;
      move.knobs["tc"] = columns;
      moves.push_back(std::move(move));
    }
    return moves;
  }

  static KnobSweep SweepOf(const GroupView& view, const std::string& knob,
                           const std::vector<int64_t>& values, int64_t most) {
    KnobSweep sweep{.knob = knob, .values = {KnobOf(view, knob)}};
    for (int64_t value : values) {
      if (value <= most && value != sweep.values[0]) sweep.values.push_back(value);
    }
    return sweep;
  }
};

}  // namespace

const Family& ContractionFamily() {
  static const auto* const family = new ContractionFamilyImplementation();
  return *family;
}

}  // namespace mtmc::kernel
