// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/contraction/contraction_tiles.h"

#include <algorithm>
#include <optional>

#include "kernel/graph/text.h"
#include "kernel/templates/contraction/contraction_knobs.h"
#include "kernel/view/group_view.h"
#include "kernel/writer/kernel_writer.h"
#include "kernel/writer/lane_loads.h"

namespace mtmc::kernel {
namespace {

// Elements per wide access: 16 bytes of f32, which is also what four rows of a micro-tile are.
constexpr int kLanes = 4;

// How one factor comes into shared memory.
struct Factor {
  // `a` or `b`, with its role `m` or `n`.
  std::string name;
  std::string role;
  ScalarPtr body;
  int64_t extent = 1;
  // Consecutive threads take consecutive k, else consecutive m or n.
  bool is_k_fast = true;
  // Elements per load.
  int lanes = 1;
};

class TilePrinter {
 public:
  TilePrinter(const GroupView& view, const EmitTarget& target,
              const std::vector<std::string>& tuned)
      : view_(view),
        loop_(*FindContraction(view)),
        space_(SpaceOf(loop_)),
        is_tuned_(!tuned.empty()),
        is_long_(space_.k > kLongestSum),
        type_(loop_.types[0].data_type),
        writer_(view, target, tuned, view.group->name) {}

  absl::StatusOr<EmittedStep> Print() {
    writer_.Reserve({"BM",       "BN",      "BK",      "TM",     "TN",     "M_THREADS", "N_THREADS",
                     "THREADS",  "M_TILES", "N_TILES", "A_ROW",  "B_ROW",  "A_LOADS",   "B_LOADS",
                     "tile",     "m_base",  "n_base",  "k_base", "batch",  "thread",    "m_thread",
                     "n_thread", "a_tile",  "b_tile",  "a_next", "b_next", "sum",       "load",
                     "stretch",  "place",   "tile_m",  "tile_n", "tile_k", "m",         "n",
                     "k",        "m4",      "n4",      "k4",     "v",      "a",         "b",
                     "i",        "j"});
    for (const std::string& value : view_.inputs) writer_.AddParameter(value, false);
    for (const std::string& value : view_.outputs) writer_.AddParameter(value, true);
    PrintHead();
    const Factor a = MakeFactor("a", "m", loop_.lhs, space_.m);
    const Factor b = MakeFactor("b", "n", loop_.rhs, space_.n);
    PrintSharedArrays(a, b);
    const std::string k = std::to_string(space_.k);
    writer_.Comment("Step s loads k-block s into registers and multiplies block s - 1.");
    writer_.Open(Concat("for (int k_base = 0; k_base < ", k, " + BK; k_base += BK)"));
    writer_.Open(Concat("if (k_base < ", k, ")"));
    PrintLoad(a);
    PrintLoad(b);
    writer_.Close();
    PrintMultiply();
    if (is_long_) {
      writer_.Open(Concat("if (k_base % ", kSumStretch, " < BK)"));
      PrintTakeStretch();
      writer_.Close();
    }
    writer_.Barrier();
    PrintStage(a);
    PrintStage(b);
    writer_.Barrier();
    writer_.Close();
    if (is_long_) PrintTakeStretch();
    PrintEpilogue();
    return Finish();
  }

 private:
  int64_t Knob(std::string_view knob) const { return view_.group->knobs.find(knob)->second; }

  void PrintHead() {
    writer_.Line(Concat("enum { BM = ", writer_.Knob("bm"), ", BN = ", writer_.Knob("bn"),
                        ", BK = ", writer_.Knob("bk"), ", TM = ", writer_.Knob("tm"),
                        ", TN = ", writer_.Knob("tn"), " };"));
    writer_.Line(
        "enum { M_THREADS = BM / TM, N_THREADS = BN / TN, THREADS = M_THREADS * N_THREADS };");
    writer_.Line(Concat("enum { M_TILES = (", space_.m, " + BM - 1) / BM, N_TILES = (", space_.n,
                        " + BN - 1) / BN };"));
    const DialectText& text = writer_.text();
    writer_.Line(Concat("const int tile = ", text.BlockId(0), ";"));
    writer_.Line("const int n_base = tile % N_TILES * BN;");
    writer_.Line("const int m_base = tile / N_TILES % M_TILES * BM;");
    batch_ = space_.batch > 1 ? writer_.Declare("batch", space_.batch, "tile / (N_TILES * M_TILES)")
                              : kernel::Index(0);
    // Consecutive threads lie along the axis in which the result is contiguous.
    writer_.Line(Concat("const int thread = ", text.ThreadId(0), ";"));
    const bool is_n_fast = !IsMFast();
    writer_.Line(is_n_fast ? "const int n_thread = thread % N_THREADS;"
                           : "const int m_thread = thread % M_THREADS;");
    writer_.Line(is_n_fast ? "const int m_thread = thread / N_THREADS;"
                           : "const int n_thread = thread / M_THREADS;");
  }

  // Whether the innermost axis of the result belongs to m.
  bool IsMFast() const {
    for (int axis = loop_.output_axes() - 1; axis >= 0; --axis) {
      if (loop_.extents[static_cast<size_t>(axis)] == 1) continue;
      return std::find(space_.m_axes.begin(), space_.m_axes.end(), axis) != space_.m_axes.end();
    }
    return false;
  }

  Factor MakeFactor(const std::string& name, const std::string& role, const ScalarPtr& body,
                    int64_t extent) const {
    Factor factor{.name = name, .role = role, .body = body, .extent = extent};
    // The strides of the first tensor read decide; axes: role, k.
    const std::vector<int64_t> extents = {extent, space_.k};
    const ScalarPtr zero = kernel::Index(0);
    const bool is_a = role == "m";
    const std::vector<ScalarPtr> axes =
        AxesOf(space_, zero, is_a ? Axis(0) : zero, is_a ? zero : Axis(0), Axis(1), extents);
    for (const ElementRead& read : ElementReads(view_, SubstituteAxes(body, axes), extents)) {
      const std::optional<AxisStride> along_k = StrideAlong(read.offset, 1, extents);
      const std::optional<AxisStride> along_role = StrideAlong(read.offset, 0, extents);
      const bool is_k_unit = along_k && along_k->stride == 1;
      const bool is_role_unit = along_role && along_role->stride == 1;
      if (!is_k_unit && !is_role_unit) {
        // Taken apart axes: the innermost of a convolution's pixels is contiguous.
        factor.is_k_fast = !is_a && !is_role_unit && !IsInnermostUnit(read, extents);
        break;
      }
      factor.is_k_fast = is_k_unit;
      const std::optional<AxisStride>& along = is_k_unit ? along_k : along_role;
      const int64_t fast_extent = is_k_unit ? space_.k : extent;
      const bool is_aligned = along->alignment % kLanes == 0 && fast_extent % kLanes == 0;
      if (is_aligned && !read.is_guarded && type_ == DataType::kF32) factor.lanes = kLanes;
      break;
    }
    return factor;
  }

  // Whether the offset contains the role's axis, modulo its innermost extent, with factor one.
  static bool IsInnermostUnit(const ElementRead& read, const std::vector<int64_t>& extents) {
    const std::vector<int64_t> two = {std::min<int64_t>(extents[0], 2), 1};
    const std::optional<AxisStride> stride = StrideAlong(read.offset, 0, two);
    return stride && stride->stride == 1;
  }

  void PrintSharedArrays(const Factor& a, const Factor& b) {
    const DialectText& text = writer_.text();
    const std::string type = text.ComputeType(type_);
    const std::string aligned = text.is_cuda() ? "__align__(16) " + type : type;
    writer_.Line("// Rows are one k; the padding spreads the banks of a column.");
    writer_.Line("enum { A_ROW = BM + 4, B_ROW = BN + 4 };");
    writer_.Line(text.SharedArray(aligned, "a_tile", "BK * A_ROW"));
    writer_.Line(text.SharedArray(aligned, "b_tile", "BK * B_ROW"));
    for (const Factor* factor : {&a, &b}) {
      writer_.Line(Concat("enum { ", Upper(*factor), "_LOADS = (", Rows(*factor), " * BK / ",
                          factor->lanes, " + THREADS - 1) / THREADS };"));
      writer_.Line(Concat(type, " ", factor->name, "_next[", Upper(*factor), "_LOADS",
                          factor->lanes > 1 ? Concat(" * ", factor->lanes) : "", "];"));
    }
    writer_.Line(Concat(type, " sum[TM * TN] = {0};"));
    if (is_long_) writer_.Line(Concat(type, " stretch[TM * TN] = {0};"));
  }

  static std::string Upper(const Factor& factor) { return factor.name == "a" ? "A" : "B"; }

  static std::string Rows(const Factor& factor) { return factor.role == "m" ? "BM" : "BN"; }

  // Declares where in the tile load number `load` of this thread goes. Returns whether the
  // number of elements is no multiple of the threads, so that the caller must guard.
  void PrintPlace(const Factor& factor) {
    const std::string rows = Rows(factor);
    const std::string width = factor.is_k_fast ? "BK" : rows;
    const std::string lanes = std::to_string(factor.lanes);
    const std::string chunks = factor.lanes > 1 ? Concat("(", width, " / ", lanes, ")") : width;
    const std::string times = factor.lanes > 1 ? Concat(" * ", lanes) : "";
    writer_.Line("const int place = thread + load * THREADS;");
    const std::string fast = factor.is_k_fast ? "tile_k" : "tile_" + factor.role;
    const std::string slow = factor.is_k_fast ? "tile_" + factor.role : "tile_k";
    writer_.Line(Concat("const int ", fast, " = place % ", chunks, times, ";"));
    writer_.Line(Concat("const int ", slow, " = place / ", chunks, ";"));
  }

  // Absent when every place is inside the tile.
  std::optional<std::string> PlaceGuard(const Factor& factor) const {
    const int64_t rows = Knob(factor.role == "m" ? "bm" : "bn");
    const int64_t threads = Knob("bm") / Knob("tm") * (Knob("bn") / Knob("tn"));
    if (!is_tuned_ && rows * Knob("bk") / factor.lanes % threads == 0) return std::nullopt;
    return Concat(factor.is_k_fast ? "tile_" + factor.role : "tile_k", " < ",
                  factor.is_k_fast ? Rows(factor) : "BK");
  }

  void OpenLoads(const Factor& factor) {
    writer_.Unroll();
    writer_.Open(Concat("for (int load = 0; load < ", Upper(factor), "_LOADS; ++load)"));
    PrintPlace(factor);
  }

  void PrintLoad(const Factor& factor) {
    OpenLoads(factor);
    const bool is_wide = factor.lanes > 1;
    const std::string target = factor.name + "_next[load" + (is_wide ? " * 4 + v]" : "]");
    // Chunks of the fast axis, single elements of the slow one.
    const int64_t k_lanes = factor.is_k_fast ? factor.lanes : 1;
    const int64_t role_lanes = factor.is_k_fast ? 1 : factor.lanes;
    const ScalarPtr k = DeclareChunk("k", space_.k, k_lanes, "k_base + tile_k");
    const ScalarPtr role = DeclareChunk(factor.role, factor.extent, role_lanes,
                                        Concat(factor.role, "_base + tile_", factor.role));
    const std::vector<std::string> guards = Guards(factor);
    ScalarPtr lane = kernel::Index(0);
    if (is_wide) lane = writer_.Axis("v", factor.lanes);
    const ScalarPtr k_index = k_lanes > 1 ? Add(Mul(k, kernel::Index(kLanes)), lane) : k;
    const ScalarPtr role_index =
        role_lanes > 1 ? Add(Mul(role, kernel::Index(kLanes)), lane) : role;
    const ScalarPtr zero = kernel::Index(0);
    const bool is_a = factor.role == "m";
    const std::vector<ScalarPtr> axes =
        AxesOf(space_, batch_, is_a ? role_index : zero, is_a ? zero : role_index, k_index,
               writer_.extents());
    if (!guards.empty()) {
      if (is_wide) {
        writer_.Line(Concat("for (int v = 0; v < 4; ++v) ", target, " = 0;"));
      } else {
        writer_.Line(Concat(target, " = 0;"));
      }
      writer_.Open(Concat("if (", kernel::Join(guards, " && "), ")"));
    }
    if (is_wide) {
      const std::vector<LaneArray> arrays =
          PrintLaneLoads(writer_, view_, {SubstituteAxes(factor.body, axes)}, lane, factor.lanes);
      writer_.Unroll();
      writer_.Open("for (int v = 0; v < 4; ++v)");
      BindLanes(writer_, arrays, "v");
      writer_.Line(Concat(target, " = ", writer_.Body(factor.body, axes), ";"));
      writer_.Close();
    } else {
      writer_.Line(Concat(target, " = ", writer_.Body(factor.body, axes), ";"));
    }
    if (!guards.empty()) writer_.Close();
    writer_.Close();
  }

  // `k` itself, or `k4`, the number of its chunk of four.
  ScalarPtr DeclareChunk(const std::string& name, int64_t extent, int64_t lanes,
                         const std::string& definition) {
    if (lanes == 1) {
      writer_.Line(Concat("const int ", name, " = ", definition, ";"));
      return writer_.Axis(name, extent);
    }
    writer_.Line(Concat("const int ", name, "4 = (", definition, ") / 4;"));
    return writer_.Axis(name + "4", extent / lanes);
  }

  std::vector<std::string> Guards(const Factor& factor) const {
    std::vector<std::string> guards;
    if (const std::optional<std::string> place = PlaceGuard(factor)) guards.push_back(*place);
    const auto add = [&](const std::string& name, int64_t extent, int64_t block, bool is_wide) {
      if (!is_tuned_ && extent % block == 0) return;
      guards.push_back(is_wide ? Concat(name, "4 < ", extent / kLanes)
                               : Concat(name, " < ", extent));
    };
    const bool is_wide = factor.lanes > 1;
    add(factor.role, factor.extent, Knob(factor.role == "m" ? "bm" : "bn"),
        is_wide && !factor.is_k_fast);
    add("k", space_.k, Knob("bk"), is_wide && factor.is_k_fast);
    return guards;
  }

  void PrintStage(const Factor& factor) {
    OpenLoads(factor);
    const std::optional<std::string> guard = PlaceGuard(factor);
    if (guard) writer_.Open(Concat("if (", *guard, ")"));
    const std::string row = Upper(factor) + "_ROW";
    const std::string tile = factor.name + "_tile";
    const std::string column = "tile_" + factor.role;
    if (factor.lanes == 1) {
      writer_.Line(
          Concat(tile, "[tile_k * ", row, " + ", column, "] = ", factor.name, "_next[load];"));
    } else {
      writer_.Unroll();
      writer_.Open("for (int v = 0; v < 4; ++v)");
      const std::string place = factor.is_k_fast ? Concat("(tile_k + v) * ", row, " + ", column)
                                                 : Concat("tile_k * ", row, " + ", column, " + v");
      writer_.Line(Concat(tile, "[", place, "] = ", factor.name, "_next[load * 4 + v];"));
      writer_.Close();
    }
    if (guard) writer_.Close();
    writer_.Close();
  }

  // A thread's rows lie in groups of four, so that a load from shared memory is 16 bytes wide
  // and neighbouring threads read neighbouring words.
  void PrintMultiply() {
    writer_.Open("if (k_base > 0)");
    writer_.Unroll();
    writer_.Open("for (int k = 0; k < BK; ++k)");
    const std::string type = writer_.text().ComputeType(type_);
    writer_.Line(Concat(type, " a[TM];"));
    writer_.Line(Concat(type, " b[TN];"));
    const bool is_wide = writer_.text().is_cuda() && type_ == DataType::kF32;
    for (const std::string name : {"a", "b"}) {
      const std::string count = name == "a" ? "TM" : "TN";
      const std::string thread = name == "a" ? "m_thread" : "n_thread";
      const std::string threads = name == "a" ? "M_THREADS" : "N_THREADS";
      const std::string row = Concat(name, "_tile + k * ", name == "a" ? "A_ROW" : "B_ROW");
      writer_.Unroll();
      if (is_wide) {
        writer_.Line(Concat("for (int i = 0; i < ", count, "; i += 4) load_f32x4(", name, " + i, ",
                            row, " + i * ", threads, " + ", thread, " * 4);"));
      } else {
        writer_.Line(Concat("for (int i = 0; i < ", count, "; ++i) ", name, "[i] = (", row,
                            ")[i / 4 * 4 * ", threads, " + ", thread, " * 4 + i % 4];"));
      }
    }
    writer_.Unroll();
    writer_.Open("for (int i = 0; i < TM; ++i)");
    writer_.Unroll();
    writer_.Line(Concat("for (int j = 0; j < TN; ++j) ", is_long_ ? "stretch" : "sum",
                        "[i * TN + j] += a[i] * b[j];"));
    writer_.Close();
    writer_.Close();
    writer_.Close();
  }

  void PrintTakeStretch() {
    writer_.Unroll();
    writer_.Open("for (int i = 0; i < TM * TN; ++i)");
    writer_.Line("sum[i] += stretch[i];");
    writer_.Line("stretch[i] = 0;");
    writer_.Close();
  }

  void PrintEpilogue() {
    const bool is_m_fast = IsMFast();
    const int64_t fast_extent = is_m_fast ? space_.m : space_.n;
    const bool is_wide = fast_extent % kLanes == 0 && CanStoreWide(is_m_fast);
    const std::string m = "m_base + i / 4 * 4 * M_THREADS + m_thread * 4 + i % 4";
    const std::string n = "n_base + j / 4 * 4 * N_THREADS + n_thread * 4 + j % 4";
    writer_.Unroll();
    writer_.Open(Concat("for (int i = 0; i < TM; ", is_wide && is_m_fast ? "i += 4)" : "++i)"));
    writer_.Unroll();
    writer_.Open(Concat("for (int j = 0; j < TN; ", is_wide && !is_m_fast ? "j += 4)" : "++j)"));
    const ScalarPtr m_axis = DeclareChunk("m", space_.m, is_wide && is_m_fast ? kLanes : 1, m);
    const ScalarPtr n_axis = DeclareChunk("n", space_.n, is_wide && !is_m_fast ? kLanes : 1, n);
    std::vector<std::string> guards;
    if (is_tuned_ || space_.m % Knob("bm") != 0) {
      guards.push_back(is_wide && is_m_fast ? Concat("m4 < ", space_.m / kLanes)
                                            : Concat("m < ", space_.m));
    }
    if (is_tuned_ || space_.n % Knob("bn") != 0) {
      guards.push_back(is_wide && !is_m_fast ? Concat("n4 < ", space_.n / kLanes)
                                             : Concat("n < ", space_.n));
    }
    if (!guards.empty()) writer_.Open(Concat("if (", kernel::Join(guards, " && "), ")"));
    if (is_wide) {
      PrintWideStores(m_axis, n_axis, is_m_fast);
    } else {
      const std::vector<ScalarPtr> axes = OutputAxes(m_axis, n_axis);
      writer_.Bind(loop_.results[0], axes, "sum[i * TN + j]");
      for (const std::string& value : view_.outputs) {
        const std::vector<ScalarPtr> indices = IndicesFor(value, axes);
        const std::string element = writer_.Value(value, indices);
        writer_.Store(value, indices, element);
      }
    }
    if (!guards.empty()) writer_.Close();
    writer_.Close();
    writer_.Close();
  }

  std::vector<ScalarPtr> OutputAxes(const ScalarPtr& m, const ScalarPtr& n) const {
    std::vector<ScalarPtr> axes = AxesOf(space_, batch_, m, n, kernel::Index(0), writer_.extents());
    axes.resize(static_cast<size_t>(loop_.output_axes()));
    return axes;
  }

  // Output elements lie where the result's do, in row-major order.
  std::vector<ScalarPtr> IndicesFor(const std::string& value,
                                    const std::vector<ScalarPtr>& axes) const {
    const ScalarPtr offset = OffsetOf(loop_.types[0], axes, writer_.extents());
    return IndicesOf(view_.nest->types.find(value)->second, offset, writer_.extents());
  }

  // Whether four consecutive elements of the fast axis are consecutive in the result.
  bool CanStoreWide(bool is_m_fast) const {
    const int64_t chunks = (is_m_fast ? space_.m : space_.n) / kLanes;
    const std::vector<int64_t> extents = {chunks, kLanes, is_m_fast ? space_.n : space_.m,
                                          space_.batch};
    const ScalarPtr fast = Add(Mul(Axis(0), kernel::Index(kLanes)), Axis(1));
    std::vector<ScalarPtr> axes = AxesOf(space_, Axis(3), is_m_fast ? fast : Axis(2),
                                         is_m_fast ? Axis(2) : fast, kernel::Index(0), extents);
    axes.resize(static_cast<size_t>(loop_.output_axes()));
    const std::optional<AxisStride> stride =
        StrideAlong(OffsetOf(loop_.types[0], axes, extents), 1, extents);
    return stride && stride->stride == 1 && stride->alignment % kLanes == 0;
  }

  void PrintWideStores(const ScalarPtr& m, const ScalarPtr& n, bool is_m_fast) {
    const ScalarPtr lane = writer_.Axis("v", kLanes);
    const ScalarPtr zero = kernel::Index(0);
    const auto index = [&](const ScalarPtr& axis, bool is_fast, const ScalarPtr& v) {
      return is_fast ? Add(Mul(axis, kernel::Index(kLanes)), v) : axis;
    };
    const std::vector<ScalarPtr> axes =
        OutputAxes(index(m, is_m_fast, lane), index(n, !is_m_fast, lane));
    const std::vector<ScalarPtr> first =
        OutputAxes(index(m, is_m_fast, zero), index(n, !is_m_fast, zero));
    std::vector<ScalarPtr> roots;
    for (const std::string& value : view_.outputs) {
      const TensorType& type = view_.nest->types.find(value)->second;
      roots.push_back(Read(value, IndicesFor(value, axes), type.data_type));
    }
    const std::vector<LaneArray> arrays = PrintLaneLoads(writer_, view_, roots, lane, kLanes);
    std::vector<std::string> results;
    for (const std::string& value : view_.outputs) {
      const TensorType& type = view_.nest->types.find(value)->second;
      results.push_back(writer_.Fresh(value + "_v"));
      writer_.Line(Concat(writer_.text().ComputeType(type.data_type), " ", results.back(), "[4];"));
    }
    writer_.Unroll();
    writer_.Open("for (int v = 0; v < 4; ++v)");
    BindLanes(writer_, arrays, "v");
    writer_.Bind(loop_.results[0], axes,
                 is_m_fast ? "sum[(i + v) * TN + j]" : "sum[i * TN + j + v]");
    for (size_t o = 0; o < view_.outputs.size(); ++o) {
      const std::string element =
          writer_.Value(view_.outputs[o], IndicesFor(view_.outputs[o], axes));
      writer_.Line(Concat(results[o], "[v] = ", element, ";"));
    }
    writer_.Close();
    const ScalarPtr offset = OffsetOf(loop_.types[0], first, writer_.extents());
    for (size_t o = 0; o < view_.outputs.size(); ++o) {
      writer_.StoreVector(view_.outputs[o], offset, results[o], kLanes);
    }
  }

  absl::StatusOr<EmittedStep> Finish() {
    const auto tiles = [&](int64_t extent, std::string_view knob) {
      return Concat("ceil_div(", extent, ", ", writer_.Knob(knob), ")");
    };
    std::string grid = Concat(tiles(space_.m, "bm"), " * ", tiles(space_.n, "bn"));
    if (space_.batch > 1) grid += Concat(" * ", space_.batch);
    const std::string threads =
        is_tuned_ ? Concat("(", writer_.Knob("bm"), " / ", writer_.Knob("tm"), ") * (",
                           writer_.Knob("bn"), " / ", writer_.Knob("tn"), ")")
                  : std::to_string(Knob("bm") / Knob("tm") * (Knob("bn") / Knob("tn")));
    return writer_.Finish({.grid = {grid}, .block = {threads}});
  }

  const GroupView& view_;
  const Loop& loop_;
  const ContractionSpace space_;
  const bool is_tuned_;
  const bool is_long_;
  const DataType type_;
  KernelWriter writer_;
  ScalarPtr batch_;
};

}  // namespace

absl::StatusOr<EmittedStep> PrintTiledContraction(const GroupView& view, const EmitTarget& target,
                                                  const std::vector<std::string>& tuned) {
  return TilePrinter(view, target, tuned).Print();
}

}  // namespace mtmc::kernel
