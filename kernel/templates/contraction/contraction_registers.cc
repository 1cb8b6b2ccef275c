// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/contraction/contraction_registers.h"

#include <algorithm>
#include <optional>

#include "kernel/graph/text.h"
#include "kernel/templates/contraction/contraction_knobs.h"
#include "kernel/view/group_view.h"
#include "kernel/writer/kernel_writer.h"
#include "kernel/writer/lane_loads.h"

namespace mtmc::kernel {
namespace {

// Floats of one 256-bit register; compilers split wider ones.
constexpr int kLanes = 8;
// Bytes of a panel of columns: a part of a core's second-level cache.
constexpr int64_t kPanelBytes = 256 * 1024;
constexpr int64_t kMaxPanel = 128;

// The result seen row by row: rows are m and columns n, or the other way round when m is the
// contiguous side of the result.
struct Orientation {
  bool has_m_rows = true;
  int64_t rows = 1;
  int64_t columns = 1;
  // Lanes along k; along the columns otherwise.
  bool has_k_lanes = false;
};

bool IsMFast(const ContractionSpace& space) {
  for (int axis = space.loop->output_axes() - 1; axis >= 0; --axis) {
    if (space.loop->extents[static_cast<size_t>(axis)] == 1) continue;
    return std::find(space.m_axes.begin(), space.m_axes.end(), axis) != space.m_axes.end();
  }
  return false;
}

// Whether every tensor of the factor is contiguous along k and never guarded.
bool IsContiguousAlongK(const GroupView& view, const ContractionSpace& space, bool is_left) {
  const std::vector<int64_t> extents = {is_left ? space.m : space.n, space.k / kLanes, kLanes,
                                        space.batch};
  const ScalarPtr zero = kernel::Index(0);
  const ScalarPtr k = Add(Mul(Axis(1), kernel::Index(kLanes)), Axis(2));
  const std::vector<ScalarPtr> axes =
      AxesOf(space, Axis(3), is_left ? Axis(0) : zero, is_left ? zero : Axis(0), k, extents);
  const ScalarPtr& body = is_left ? space.loop->lhs : space.loop->rhs;
  const std::vector<ElementRead> reads = ElementReads(view, SubstituteAxes(body, axes), extents);
  return !reads.empty() && std::all_of(reads.begin(), reads.end(), [&](const ElementRead& read) {
    const std::optional<AxisStride> stride = StrideAlong(read.offset, 2, extents);
    return !read.is_guarded && stride && stride->stride == 1 && stride->alignment % kLanes == 0;
  });
}

std::optional<Orientation> FindOrientation(const GroupView& view) {
  const Loop& loop = *FindContraction(view);
  if (loop.types[0].data_type != DataType::kF32) return std::nullopt;
  const ContractionSpace space = SpaceOf(loop);
  Orientation orientation{.has_m_rows = !IsMFast(space)};
  orientation.rows = orientation.has_m_rows ? space.m : space.n;
  orientation.columns = orientation.has_m_rows ? space.n : space.m;
  orientation.has_k_lanes = space.k % kLanes == 0 && IsContiguousAlongK(view, space, true) &&
                            IsContiguousAlongK(view, space, false);
  if (!orientation.has_k_lanes && orientation.columns % kLanes != 0) return std::nullopt;
  return orientation;
}

class RegisterPrinter {
 public:
  RegisterPrinter(const GroupView& view, const EmitTarget& target,
                  const std::vector<std::string>& tuned, const Orientation& orientation)
      : view_(view),
        loop_(*FindContraction(view)),
        space_(SpaceOf(loop_)),
        orientation_(orientation),
        row_(orientation.has_m_rows ? "m" : "n"),
        column_(orientation.has_m_rows ? "n" : "m"),
        rows_per_item_(std::min(KnobOf("tr"), orientation.rows)),
        vectors_(KnobOf("tc")),
        writer_(view, target, tuned, view.group->name) {}

  absl::StatusOr<EmittedStep> Print() {
    writer_.Reserve({"TR",      "TC",       "STEP",       "PANEL",       "ROW_TILES", "PANELS",
                     "item",    "row_base", "panel_base", "column_base", "batch",     "m",
                     "n",       "k",        "k8",         "m8",          "n8",        "sum",
                     "stretch", "total",    "left",       "right",       "lane",      "v",
                     "i",       "j",        "c"});
    for (const std::string& value : view_.inputs) writer_.AddParameter(value, false);
    for (const std::string& value : view_.outputs) writer_.AddParameter(value, true);
    PrintHead();
    writer_.Open(
        "for (int column_base = panel_base; column_base < panel_base + PANEL; "
        "column_base += STEP)");
    PrintSums();
    PrintTotals();
    writer_.Close();
    PrintEpilogue();
    return writer_.Finish({.grid = {Concat(RowTiles() * Panels() * space_.batch)}, .block = {"1"}});
  }

 private:
  int64_t KnobOf(std::string_view knob) const { return view_.group->knobs.find(knob)->second; }

  // Columns that one pass over k computes.
  int64_t Step() const { return orientation_.has_k_lanes ? vectors_ : vectors_ * kLanes; }

  int64_t Panel() const {
    const int64_t wanted = std::clamp<int64_t>(kPanelBytes / 4 / space_.k, Step(), kMaxPanel);
    const int64_t most = (orientation_.columns + Step() - 1) / Step() * Step();
    return std::min(wanted / Step() * Step(), most);
  }

  int64_t RowTiles() const { return (orientation_.rows + rows_per_item_ - 1) / rows_per_item_; }

  int64_t Panels() const { return (orientation_.columns + Panel() - 1) / Panel(); }

  bool HasRaggedRows() const { return orientation_.rows % rows_per_item_ != 0; }

  bool HasRaggedColumns() const { return orientation_.columns % Panel() != 0; }

  void PrintHead() {
    writer_.Line(Concat("enum { TR = ", rows_per_item_, ", TC = ", vectors_, ", STEP = ", Step(),
                        ", PANEL = ", Panel(), " };"));
    writer_.Line(Concat("enum { ROW_TILES = ", RowTiles(), ", PANELS = ", Panels(), " };"));
    writer_.Line(Concat("const int item = ", writer_.text().BlockId(0), ";"));
    writer_.Line("const int row_base = item % ROW_TILES * TR;");
    writer_.Line("const int panel_base = item / ROW_TILES % PANELS * PANEL;");
    batch_ = space_.batch > 1
                 ? writer_.Declare("batch", space_.batch, "item / (ROW_TILES * PANELS)")
                 : kernel::Index(0);
    writer_.Line("float total[TR * PANEL];");
  }

  // The vector sums of TR x TC over all of k.
  void PrintSums() {
    const bool has_k_lanes = orientation_.has_k_lanes;
    writer_.Line("float8 sum[TR * TC];");
    writer_.Unroll();
    writer_.Line("for (int i = 0; i < TR * TC; ++i) sum[i] = 0.0f;");
    const bool is_long = space_.k > kLongestSum;
    if (is_long) {
      writer_.Line("float8 stretch[TR * TC];");
      writer_.Unroll();
      writer_.Line("for (int i = 0; i < TR * TC; ++i) stretch[i] = 0.0f;");
    }
    const std::string k = has_k_lanes ? "k8" : "k";
    const int64_t steps = has_k_lanes ? space_.k / kLanes : space_.k;
    const ScalarPtr k_axis = writer_.Axis(k, steps);
    writer_.Open(Concat("for (int ", k, " = 0; ", k, " < ", steps, "; ++", k, ")"));
    writer_.Line(Concat(has_k_lanes ? "float8" : "float", " left[TR];"));
    writer_.Line("float8 right[TC];");
    writer_.Unroll();
    writer_.Open("for (int i = 0; i < TR; ++i)");
    PrintOperand("left[i]", row_, DeclareRow("row_base + i"), k_axis, has_k_lanes, has_k_lanes);
    writer_.Close();
    writer_.Unroll();
    writer_.Open("for (int j = 0; j < TC; ++j)");
    PrintOperand("right[j]", column_, DeclareColumn(), k_axis, has_k_lanes, /*is_vector=*/true);
    writer_.Close();
    writer_.Unroll();
    writer_.Open("for (int i = 0; i < TR; ++i)");
    writer_.Unroll();
    writer_.Line(Concat("for (int j = 0; j < TC; ++j) ", is_long ? "stretch" : "sum",
                        "[i * TC + j] += left[i] * right[j];"));
    writer_.Close();
    if (is_long) {
      writer_.Open(Concat("if (", k, " % ", kSumStretch, " == ", kSumStretch - 1, ")"));
      PrintTakeStretch();
      writer_.Close();
    }
    writer_.Close();
    if (is_long) PrintTakeStretch();
  }

  void PrintTakeStretch() {
    writer_.Unroll();
    writer_.Open("for (int i = 0; i < TR * TC; ++i)");
    writer_.Line("sum[i] += stretch[i];");
    writer_.Line("stretch[i] = 0.0f;");
    writer_.Close();
  }

  // Rows past the end repeat the last one; their sums are not stored.
  ScalarPtr DeclareRow(const std::string& definition) {
    const std::string inside =
        HasRaggedRows() ? Concat("min(", definition, ", ", orientation_.rows - 1, ")") : definition;
    writer_.Line(Concat("const int ", row_, " = ", inside, ";"));
    return writer_.Axis(row_, orientation_.rows);
  }

  // A column, or a chunk of eight.
  ScalarPtr DeclareColumn() {
    const bool is_chunk = !orientation_.has_k_lanes;
    const int64_t extent = is_chunk ? orientation_.columns / kLanes : orientation_.columns;
    const std::string name = is_chunk ? column_ + "8" : column_;
    const std::string definition = is_chunk ? "column_base / 8 + j" : "column_base + j";
    const std::string inside =
        HasRaggedColumns() ? Concat("min(", definition, ", ", extent - 1, ")") : definition;
    writer_.Line(Concat("const int ", name, " = ", inside, ";"));
    return writer_.Axis(name, extent);
  }

  // Sets `target` to the factor of `role` at this position: a float8 over the lanes, or a float.
  void PrintOperand(const std::string& target, const std::string& role, const ScalarPtr& position,
                    const ScalarPtr& k_axis, bool has_k_lanes, bool is_vector) {
    const ScalarPtr lane = is_vector ? writer_.Axis("v", kLanes) : kernel::Index(0);
    const ScalarPtr eight = kernel::Index(kLanes);
    const ScalarPtr k = has_k_lanes ? Add(Mul(k_axis, eight), lane) : k_axis;
    const ScalarPtr at = is_vector && !has_k_lanes ? Add(Mul(position, eight), lane) : position;
    const bool is_left_factor = role == "m";
    const ScalarPtr zero = kernel::Index(0);
    const std::vector<ScalarPtr> axes = AxesOf(space_, batch_, is_left_factor ? at : zero,
                                               is_left_factor ? zero : at, k, writer_.extents());
    const ScalarPtr& body = is_left_factor ? loop_.lhs : loop_.rhs;
    if (!is_vector) {
      writer_.Line(Concat(target, " = ", writer_.Body(body, axes), ";"));
      return;
    }
    const ScalarPtr root = SubstituteAxes(body, axes);
    const std::vector<LaneArray> arrays = PrintLaneLoads(writer_, view_, {root}, lane, kLanes);
    const bool is_plain_read =
        arrays.size() == 1 &&
        InlineMaps(view_, root, writer_.extents())->kind == Scalar::Kind::kRead;
    if (is_plain_read) {
      writer_.Line(Concat(target, " = vload8(0, ", arrays[0].array, ");"));
      return;
    }
    writer_.Line("float lane[8];");
    writer_.Unroll();
    writer_.Open("for (int v = 0; v < 8; ++v)");
    BindLanes(writer_, arrays, "v");
    writer_.Line(Concat("lane[v] = ", writer_.Body(body, axes), ";"));
    writer_.Close();
    writer_.Line(Concat(target, " = vload8(0, lane);"));
  }

  void PrintTotals() {
    writer_.Unroll();
    writer_.Open("for (int i = 0; i < TR; ++i)");
    writer_.Unroll();
    writer_.Open("for (int j = 0; j < TC; ++j)");
    const std::string at = "total[i * PANEL + column_base - panel_base + j";
    if (orientation_.has_k_lanes) {
      writer_.Line(Concat(at, "] = sum_f32x8(sum[i * TC + j]);"));
    } else {
      writer_.Line("vstore8(sum[i * TC + j], j, total + i * PANEL + column_base - panel_base);");
    }
    writer_.Close();
    writer_.Close();
  }

  void PrintEpilogue() {
    writer_.Open("for (int i = 0; i < TR; ++i)");
    writer_.Line(Concat("const int ", row_, " = row_base + i;"));
    const ScalarPtr row = writer_.Axis(row_, orientation_.rows);
    if (HasRaggedRows()) writer_.Open(Concat("if (", row_, " < ", orientation_.rows, ")"));
    const std::string limit =
        HasRaggedColumns() ? Concat("min((int)PANEL, ", orientation_.columns, " - panel_base)")
                           : "PANEL";
    writer_.Open(Concat("for (int c = 0; c < ", limit, "; ++c)"));
    writer_.Line(Concat("const int ", column_, " = panel_base + c;"));
    const ScalarPtr column = writer_.Axis(column_, orientation_.columns);
    std::vector<ScalarPtr> axes =
        AxesOf(space_, batch_, orientation_.has_m_rows ? row : column,
               orientation_.has_m_rows ? column : row, kernel::Index(0), writer_.extents());
    axes.resize(static_cast<size_t>(loop_.output_axes()));
    writer_.Bind(loop_.results[0], axes, "total[i * PANEL + c]");
    const ScalarPtr offset = OffsetOf(loop_.types[0], axes, writer_.extents());
    for (const std::string& value : view_.outputs) {
      const TensorType& type = view_.nest->types.find(value)->second;
      const std::vector<ScalarPtr> indices = IndicesOf(type, offset, writer_.extents());
      const std::string element = writer_.Value(value, indices);
      writer_.Store(value, indices, element);
    }
    writer_.Close();
    if (HasRaggedRows()) writer_.Close();
    writer_.Close();
  }

  const GroupView& view_;
  const Loop& loop_;
  const ContractionSpace space_;
  const Orientation orientation_;
  const std::string row_;
  const std::string column_;
  const int64_t rows_per_item_;
  const int64_t vectors_;
  KernelWriter writer_;
  ScalarPtr batch_;
};

}  // namespace

bool HasRegisterForm(const GroupView& view) { return FindOrientation(view).has_value(); }

absl::StatusOr<EmittedStep> PrintRegisterContraction(const GroupView& view,
                                                     const EmitTarget& target,
                                                     const std::vector<std::string>& tuned) {
  const std::optional<Orientation> orientation = FindOrientation(view);
  if (!orientation) {
    return absl::InvalidArgumentError("the contraction has no form in vector registers");
  }
  return RegisterPrinter(view, target, tuned, *orientation).Print();
}

}  // namespace mtmc::kernel
