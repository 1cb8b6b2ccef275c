// SPDX-License-Identifier: Apache-2.0
#include "kernel/emit/row_kernel.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "common/base/status_macros.h"
#include "kernel/emit/accumulator.h"
#include "kernel/emit/group_view.h"
#include "kernel/emit/index_algebra.h"
#include "kernel/emit/kernel_writer.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

// Elements a thread may keep in registers: half of the 255 that a CUDA thread
// has, so that addresses and states fit beside them.
constexpr int64_t kMostCachedElements = 128;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

const TensorType& TypeOf(const GroupView& view, const std::string& value) {
  return view.nest->types.find(value)->second;
}

bool IsVectorWidth(int64_t lanes) { return lanes == 2 || lanes == 4 || lanes == 8 || lanes == 16; }

// Partial states of a split reduction: one tensor per field, [split, rows].
std::string PartName(const GroupView& view, const Accumulator& accumulator, size_t field) {
  return Concat(view.group->name, "_", accumulator.loop().results[0],
                accumulator.fields()[field].suffix, "_part");
}

TensorType PartType(const Accumulator& accumulator, size_t field, int64_t split, int64_t rows) {
  const DataType type = accumulator.fields()[field].data_type;
  const bool is_half = type == DataType::kF16 || type == DataType::kBf16;
  return {is_half ? DataType::kF32 : type, {split, rows}};
}

// Prints one kernel of a stage.
class StagePrinter {
 public:
  enum class Role {
    kWhole,    // reduces and stores
    kPartial,  // reduces a piece and stores its state
    kCombine,  // merges the pieces' states and stores the row outputs
  };

  StagePrinter(const GroupView& view, const EmitTarget& target,
               const std::vector<std::string>& tuned, const SweepPlan::Stage& stage,
               const RowMapping& mapping, Role role, const std::string& name)
      : view_(view),
        target_(target),
        stage_(stage),
        map_(mapping),
        role_(role),
        writer_(view, target, tuned, name),
        is_gpu_(target.warp_size > 1),
        lanes_(role == Role::kCombine ? 1 : mapping.vector),
        threads_(role == Role::kCombine ? std::to_string(mapping.block) : writer_.Knob("block")) {
    is_block_tuned_ = std::find(tuned.begin(), tuned.end(), "block") != tuned.end();
    if (!is_block_tuned_) threads_ = std::to_string(map_.block);
  }

  absl::StatusOr<EmittedStep> Print();

 private:
  struct VectorLoad {
    std::string tensor;
    std::vector<ScalarPtr> indices;
    std::string text;  // of one lane
  };

  struct State {
    Accumulator accumulator;
    std::string name;
  };

  bool by_row() const { return map_.by_row != 0; }

  bool has_lanes() const { return lanes_ > 1; }

  DialectText text() const { return writer_.text(); }

  void AddParameters();
  void DeclareAxes();
  void NameRowIndices();
  std::vector<ScalarPtr> Roots() const;
  void ReduceLevel(const std::vector<const Loop*>& level);
  void DeclareLanes(const State& state);
  void MergeLanes(std::vector<State>& states);
  void MergeThreads(std::vector<State>& states);
  void MergeWarps(std::vector<State>& states);
  void MergeShared(std::vector<State>& states, const std::string& threads,
                   const std::string& thread);
  void MergeDepth(std::vector<State>& states);
  void BindResults(const std::vector<State>& states);
  void BindLanes();
  void StoreParts(const std::vector<State>& states);
  void CombineParts(std::vector<State>& states);
  void TouchRowMaps();
  void StoreRows();
  void StoreElements();

  // Opens the loops over this thread's elements; `roots` are what will be
  // evaluated there, so that consecutive reads are loaded as vectors.
  void OpenElements(const std::vector<ScalarPtr>& roots);
  void LoadElements(const std::vector<ScalarPtr>& roots);
  void PlanCache();
  bool IsLoadable(const ElementRead& read) const;
  bool IsWide(const ElementRead& read) const;

  static std::string KeyOfRead(const ElementRead& read) {
    return Concat(read.tensor, "[", ToText(read.offset), "]");
  }

  ScalarPtr BodyHere(const Loop& loop) const;
  void OpenLane();

  void CloseLane() {
    if (has_lanes()) writer_.Close();
  }

  void CloseElements();

  std::string LoopHead(const std::string& variable, const std::string& first, int64_t count,
                       const std::string& step) const;
  Accumulator::Access Lane(const State& state, const std::string& lane) const;
  static Accumulator::Access Scalar(const State& state);
  void PrintMerge(const State& state, const Accumulator::Access& to,
                  const Accumulator::Access& from);

  std::string Thread() const { return map_.block == 1 && !is_block_tuned_ ? "0" : "thread"; }

  std::vector<ScalarPtr> FullIndices(const std::vector<ScalarPtr>& indices) const {
    std::vector<ScalarPtr> full;
    for (const ScalarPtr& index : indices) full.push_back(SubstituteAxes(index, {row_, column_}));
    return full;
  }

  std::vector<ScalarPtr> RowIndices(const std::string& value) const {
    return IndicesOf(TypeOf(view_, value), row_, writer_.extents());
  }

  const GroupView& view_;
  const EmitTarget& target_;
  const SweepPlan::Stage& stage_;
  RowMapping map_;
  const Role role_;
  KernelWriter writer_;
  const bool is_gpu_;
  const int64_t lanes_;
  std::string threads_;
  bool is_block_tuned_ = false;

  // Element of the current position: flat row and column over the writer's axes.
  ScalarPtr row_;
  ScalarPtr column_;
  ScalarPtr lane_;
  int64_t outer_ = 1;
  int64_t inner_ = 1;  // in steps of a thread: chunks of lanes, or columns by row
  std::string grid_;

  std::vector<VectorLoad> loads_;

  // What a sweep keeps for the next, by the key of the read, when caching.
  struct Kept {
    std::string array;
    bool is_filled = false;
  };

  std::map<std::string, Kept> cached_;
  // Axis that the loop over a thread's steps advances, and that of the row.
  int step_axis_ = 0;
  int row_axis_ = 0;
  bool is_caching_ = false;
  int64_t cache_steps_ = 1;

  struct RowArray {
    std::string value;
    std::vector<ScalarPtr> indices;
    std::string text;
  };

  // Row maps that live in lane arrays, for by_row.
  std::vector<RowArray> row_arrays_;
  // Results that do.
  std::vector<std::pair<std::string, std::string>> lane_results_;
  int open_scopes_ = 0;
};

absl::StatusOr<EmittedStep> StagePrinter::Print() {
  AddParameters();
  DeclareAxes();
  NameRowIndices();
  for (const std::vector<const Loop*>& level : stage_.levels) ReduceLevel(level);
  if (role_ != Role::kPartial) {
    TouchRowMaps();
    StoreRows();
    if (role_ == Role::kWhole && !stage_.full_outputs.empty()) StoreElements();
  }
  return writer_.Finish({.grid = {grid_}, .block = {threads_}});
}

void StagePrinter::AddParameters() {
  const auto add_parts = [&](bool is_written) {
    for (const Loop* loop : stage_.levels[0]) {
      const Accumulator accumulator(*loop, text());
      for (size_t field = 0; field < accumulator.fields().size(); ++field) {
        writer_.AddParameter(PartName(view_, accumulator, field),
                             PartType(accumulator, field, map_.split, stage_.space.rows),
                             is_written);
      }
    }
  };
  if (role_ == Role::kCombine) add_parts(/*is_written=*/false);
  SweepPlan::Stage read = stage_;
  if (role_ == Role::kPartial) read.row_outputs.clear();
  std::vector<std::string> inputs = ReadsOf(view_, read);
  if (role_ == Role::kCombine) {
    // Only what the row outputs read beyond the reductions.
    read.levels.clear();
    std::set<std::string> own;
    for (const Loop* loop : stage_.levels[0])
      own.insert(loop->results.begin(), loop->results.end());
    std::erase_if(read.row_outputs, [&](const std::string& name) { return own.contains(name); });
    inputs = ReadsOf(view_, read);
    std::erase_if(inputs, [&](const std::string& name) { return own.contains(name); });
  }
  for (const std::string& value : inputs) writer_.AddParameter(value, /*is_written=*/false);
  if (role_ == Role::kPartial) return add_parts(/*is_written=*/true);
  for (const std::string& value : stage_.row_outputs) {
    writer_.AddParameter(value, /*is_written=*/true);
  }
  for (const SweepPlan::FullOutput& output : stage_.full_outputs) {
    writer_.AddParameter(output.value, /*is_written=*/true);
  }
}

void StagePrinter::DeclareAxes() {
  const RowSpace& space = stage_.space;
  if (Thread() != "0") {
    writer_.Line(Concat("const int thread = ", text().ThreadId(0), ";"));
  }
  const bool has_pieces = role_ == Role::kPartial;
  const std::string block =
      has_pieces ? Concat(text().BlockId(0), " / ", map_.split) : text().BlockId(0);
  if (has_pieces) {
    writer_.Line(Concat("const int piece = ", text().BlockId(0), " % ", map_.split, ";"));
  }
  const std::string pieces = has_pieces ? Concat(" * ", map_.split) : "";
  if (by_row() && role_ != Role::kCombine) {
    const int64_t chunks = space.rows / lanes_;
    const int64_t width = map_.block / map_.depth;
    std::string position = Concat(block, width > 1 ? Concat(" * ", width) : "",
                                  map_.depth > 1    ? Concat(" + thread % ", width)
                                  : Thread() == "0" ? ""
                                                    : " + thread");
    // Threads beyond the last row repeat it: all take part in the barriers, and
    // equal values are written twice.
    if (chunks % width != 0) {
      position = Concat("min((int)(", position, "), ", chunks - 1, ")");
    }
    if (map_.depth > 1) writer_.Line(Concat("const int slice = thread / ", width, ";"));
    const ScalarPtr chunk = writer_.Declare(has_lanes() ? "row_chunk" : "row", chunks, position);
    row_axis_ = chunk->axis;
    lane_ = has_lanes() ? writer_.Axis("v", lanes_) : Index(0);
    row_ = Add(Mul(chunk, Index(lanes_)), lane_);
    outer_ = space.outer;
    inner_ = space.inner;
    grid_ = Concat("ceil_div(", chunks, ", ", width, ")", pieces);
  } else {
    row_ = writer_.Declare("row", space.rows, block);
    row_axis_ = row_->axis;
    lane_ = has_lanes() ? writer_.Axis("v", lanes_) : Index(0);
    outer_ = space.outer;
    inner_ = space.inner / lanes_;
    // Runs shorter than the block would leave threads idle.
    if (outer_ > 1 && (inner_ < map_.block || map_.cache != 0)) {
      inner_ *= outer_;
      outer_ = 1;
    }
    grid_ = Concat(space.rows, pieces);
  }
  const ScalarPtr o = outer_ > 1 ? writer_.Axis("o", outer_) : Index(0);
  const ScalarPtr k = writer_.Axis(by_row() ? "k" : "c", inner_);
  const ScalarPtr within = by_row() ? k : Add(Mul(k, Index(lanes_)), lane_);
  step_axis_ = k->axis;
  column_ = Add(Mul(o, Index(by_row() ? inner_ : inner_ * lanes_)), within);
  const int64_t step = by_row() ? map_.depth : map_.block;
  cache_steps_ = CeilDiv(inner_, step);
  is_caching_ = map_.cache != 0 && role_ == Role::kWhole && outer_ == 1 && !is_block_tuned_ &&
                (stage_.levels.size() > 1 || !stage_.full_outputs.empty());
  if (is_caching_) PlanCache();
}

std::string StagePrinter::LoopHead(const std::string& variable, const std::string& first,
                                   int64_t count, const std::string& step) const {
  const std::string type = count > INT32_MAX / 2 ? text().ComputeType(DataType::kI64) : "int";
  const std::string advance = step == "1" ? Concat("++", variable) : Concat(variable, " += ", step);
  return Concat("for (", type, " ", variable, " = ", first, "; ", variable, " < ",
                text().IntegerLiteral(count, DataType::kI64), "; ", advance, ")");
}

void StagePrinter::OpenElements(const std::vector<ScalarPtr>& roots) {
  open_scopes_ = 0;
  const auto open = [&](const std::string& head) {
    writer_.Open(head);
    ++open_scopes_;
  };
  const std::string variable = by_row() ? "k" : "c";
  const std::string thread = by_row() ? (map_.depth > 1 ? "slice" : "0") : Thread();
  const std::string step = by_row() ? std::to_string(map_.depth) : threads_;
  const bool has_pieces = role_ == Role::kPartial;
  const bool splits_outer = has_pieces && outer_ >= map_.split;
  if (outer_ > 1) {
    open(splits_outer ? LoopHead("o", "piece", outer_, std::to_string(map_.split))
                      : LoopHead("o", "0", outer_, "1"));
  }
  if (is_caching_) {
    if (is_gpu_) writer_.Unroll();
    open(LoopHead("j", "0", cache_steps_, "1"));
    writer_.Line(Concat("const int ", variable, " = j * ", step, " + ", thread, ";"));
    const int64_t width = by_row() ? map_.depth : map_.block;
    if (inner_ % width != 0) open(Concat("if (", variable, " < ", inner_, ")"));
  } else if (has_pieces && !splits_outer) {
    const std::string first =
        thread == "0" ? Concat("piece * ", step) : Concat("piece * ", step, " + ", thread);
    open(LoopHead(variable, first, inner_, Concat(step, " * ", map_.split)));
  } else {
    // A thread alone on its rows needs several loads in flight.
    if (is_gpu_ && by_row() && text().is_cuda()) writer_.Line("#pragma unroll 8");
    open(LoopHead(variable, thread, inner_, step));
  }
  LoadElements(roots);
}

// Every expression that some sweep evaluates at its elements.
std::vector<ScalarPtr> StagePrinter::Roots() const {
  std::vector<ScalarPtr> roots;
  for (const std::vector<const Loop*>& level : stage_.levels) {
    for (const Loop* loop : level) roots.push_back(BodyHere(*loop));
  }
  for (const SweepPlan::FullOutput& output : stage_.full_outputs) {
    roots.push_back(
        Read(output.value, FullIndices(output.indices), TypeOf(view_, output.value).data_type));
  }
  return roots;
}

// Divides the row into its parts once, before the loops that use them.
void StagePrinter::NameRowIndices() {
  if (role_ == Role::kCombine) return;
  std::vector<ScalarPtr> start;
  for (int axis = 0; axis < static_cast<int>(writer_.extents().size()); ++axis) {
    start.push_back(axis == row_axis_ ? Axis(axis) : Index(0));
  }
  for (const ScalarPtr& root : Roots()) {
    for (const ElementRead& read : ElementReads(view_, root, writer_.extents())) {
      if (IsLoadable(read)) writer_.Index(SubstituteAxes(read.offset, start));
    }
  }
}

// What the sweeps read more than once, as far as it fits in registers.
void StagePrinter::PlanCache() {
  int64_t elements = 0;
  for (const ScalarPtr& root : Roots()) {
    for (const ElementRead& read : ElementReads(view_, root, writer_.extents())) {
      const std::string key = KeyOfRead(read);
      if (cached_.contains(key) || !IsLoadable(read) || !UsesAxis(read.offset, step_axis_))
        continue;
      if (has_lanes() && !IsWide(read)) continue;
      elements += cache_steps_ * lanes_;
      if (elements > kMostCachedElements) return;
      const std::string array = writer_.Fresh(read.tensor + "_kept");
      writer_.Line(Concat(text().ComputeType(TypeOf(view_, read.tensor).data_type), " ", array, "[",
                          cache_steps_ * lanes_, "];"));
      cached_.emplace(key, Kept{array, /*is_filled=*/false});
    }
  }
}

bool StagePrinter::IsLoadable(const ElementRead& read) const {
  return !read.is_guarded && FindLoop(view_, read.tensor) == nullptr;
}

bool StagePrinter::IsWide(const ElementRead& read) const {
  if (!is_gpu_ || !IsVectorWidth(lanes_)) return false;
  const auto stride = StrideAlong(read.offset, lane_->axis, writer_.extents());
  return stride && stride->stride == 1 && stride->alignment % lanes_ == 0;
}

// Loads runs of consecutive elements as vectors, and what is kept from or for
// another sweep through its array.
void StagePrinter::LoadElements(const std::vector<ScalarPtr>& roots) {
  loads_.clear();
  std::set<std::string> seen;
  for (const ScalarPtr& root : roots) {
    for (const ElementRead& read : ElementReads(view_, root, writer_.extents())) {
      const std::string key = KeyOfRead(read);
      if (!IsLoadable(read) || !seen.insert(key).second) continue;
      const auto kept = cached_.find(key);
      const bool is_kept = kept != cached_.end();
      const std::string slot = has_lanes() ? Concat("[j * ", lanes_, " + v]") : "[j]";
      if (is_kept && kept->second.is_filled) {
        loads_.push_back({read.tensor, read.indices, kept->second.array + slot});
        continue;
      }
      if (has_lanes() && IsWide(read)) {
        const std::string array = writer_.Fresh(read.tensor + "_v");
        writer_.LoadVector(array, read.tensor, Sub(read.offset, lane_), static_cast<int>(lanes_));
        loads_.push_back({read.tensor, read.indices, array + "[v]"});
        if (is_kept) {
          writer_.Unroll();
          writer_.Line(Concat("for (int v = 0; v < ", lanes_, "; ++v) ", kept->second.array, slot,
                              " = ", array, "[v];"));
        }
      } else if (is_kept) {
        const std::string value = writer_.Value(read.tensor, read.indices);
        writer_.Line(Concat(kept->second.array, slot, " = ", value, ";"));
      }
      if (is_kept) kept->second.is_filled = true;
    }
  }
}

void StagePrinter::CloseElements() {
  while (open_scopes_-- > 0) writer_.Close();
}

void StagePrinter::OpenLane() {
  if (has_lanes()) {
    if (is_gpu_) writer_.Unroll();
    writer_.Open(Concat("for (int v = 0; v < ", lanes_, "; ++v)"));
  }
  for (const VectorLoad& load : loads_) writer_.Bind(load.tensor, load.indices, load.text);
  BindLanes();
}

Accumulator::Access StagePrinter::Scalar(const State& state) {
  return [&state](size_t field) { return state.name + state.accumulator.fields()[field].suffix; };
}

// Field of a lane; the lanes of a thread share one Welford count.
Accumulator::Access StagePrinter::Lane(const State& state, const std::string& lane) const {
  if (!has_lanes()) return Scalar(state);
  return [&state, lane](size_t field) {
    const std::string name = state.name + state.accumulator.fields()[field].suffix;
    if (state.accumulator.is_welford() && field == 2) return name + "_lane";
    return Concat(name, "_lane[", lane, "]");
  };
}

void StagePrinter::PrintMerge(const State& state, const Accumulator::Access& to,
                              const Accumulator::Access& from) {
  const std::vector<std::string> lines = state.accumulator.Merge(to, from);
  const bool needs_scope = lines.size() > 1 && lines[0].starts_with("const ");
  if (needs_scope) writer_.Open("");
  for (const std::string& line : lines) writer_.Line(line);
  if (needs_scope) writer_.Close();
}

void StagePrinter::DeclareLanes(const State& state) {
  const auto& fields = state.accumulator.fields();
  for (size_t field = 0; field < fields.size(); ++field) {
    const std::string name = state.name + fields[field].suffix;
    const bool is_shared_count = state.accumulator.is_welford() && field == 2;
    if (!has_lanes()) {
      writer_.Line(Concat(fields[field].type, " ", name, " = ", fields[field].empty, ";"));
    } else if (is_shared_count) {
      writer_.Line(Concat(fields[field].type, " ", name, "_lane = 0;"));
    } else {
      writer_.Line(Concat(fields[field].type, " ", name, "_lane[", lanes_, "];"));
      if (is_gpu_) writer_.Unroll();
      writer_.Line(Concat("for (int v = 0; v < ", lanes_, "; ++v) ", name,
                          "_lane[v] = ", fields[field].empty, ";"));
    }
  }
}

ScalarPtr StagePrinter::BodyHere(const Loop& loop) const {
  return SubstituteAxes(loop.body, AxesAt(loop, row_, column_, writer_.extents()));
}

void StagePrinter::ReduceLevel(const std::vector<const Loop*>& level) {
  std::vector<State> states;
  std::vector<ScalarPtr> roots;
  for (const Loop* loop : level) {
    states.push_back({Accumulator(*loop, text()), writer_.Fresh(loop->results[0])});
    DeclareLanes(states.back());
    if (role_ != Role::kCombine) roots.push_back(BodyHere(*loop));
  }
  if (role_ == Role::kCombine) {
    CombineParts(states);
    MergeThreads(states);
    return BindResults(states);
  }
  OpenElements(roots);
  for (const State& state : states) {
    if (!state.accumulator.is_welford()) continue;
    const std::string count = Lane(state, "v")(2);
    writer_.Line(Concat(count, " += 1;"));
    writer_.Line(Concat("const ", state.accumulator.fields()[0].type, " ", state.name,
                        "_inverse = 1 / ", count, ";"));
  }
  OpenLane();
  for (size_t i = 0; i < states.size(); ++i) {
    const Accumulator& accumulator = states[i].accumulator;
    const std::vector<ScalarPtr> axes =
        AxesAt(accumulator.loop(), row_, column_, writer_.extents());
    Accumulator::Element element{.value = writer_.Body(accumulator.loop().body, axes)};
    if (accumulator.needs_index()) element.index = writer_.Index(column_);
    if (accumulator.is_welford()) element.inverse_count = states[i].name + "_inverse";
    const std::vector<std::string> lines = accumulator.Add(Lane(states[i], "v"), element);
    const bool needs_scope = lines.size() > 1 && states.size() > 1;
    if (needs_scope) writer_.Open("");
    for (const std::string& line : lines) writer_.Line(line);
    if (needs_scope) writer_.Close();
  }
  CloseLane();
  CloseElements();
  if (by_row()) {
    if (map_.depth > 1) MergeDepth(states);
    if (role_ == Role::kPartial) return StoreParts(states);
    return BindResults(states);
  }
  if (has_lanes()) MergeLanes(states);
  MergeThreads(states);
  if (role_ == Role::kPartial) return StoreParts(states);
  BindResults(states);
}

// Lanes in halves, so that a compiler can merge many at once; a rest that is no
// power of two goes one by one.
void StagePrinter::MergeLanes(std::vector<State>& states) {
  int64_t count = lanes_;
  for (const State& state : states) {
    if (!state.accumulator.is_welford()) continue;
    // From here on each lane has a count of its own.
    const std::string name = Scalar(state)(2);
    writer_.Line(Concat(state.accumulator.fields()[2].type, " ", name, "_lanes[", lanes_, "];"));
    if (is_gpu_) writer_.Unroll();
    writer_.Line(
        Concat("for (int v = 0; v < ", lanes_, "; ++v) ", name, "_lanes[v] = ", name, "_lane;"));
  }
  const auto lane = [](const State& state, const std::string& at) -> Accumulator::Access {
    return [&state, at](size_t field) {
      const std::string name = state.name + state.accumulator.fields()[field].suffix;
      const bool is_count = state.accumulator.is_welford() && field == 2;
      return Concat(name, is_count ? "_lanes[" : "_lane[", at, "]");
    };
  };
  while (count > 1) {
    const int64_t half = count % 2 == 0 ? count / 2 : 1;
    const int64_t rest = count % 2 == 0 ? half : count - 1;
    if (is_gpu_) writer_.Unroll();
    writer_.Open(Concat("for (int v = 0; v < ", rest, "; ++v)"));
    for (const State& state : states) {
      PrintMerge(state, lane(state, count % 2 == 0 ? "v" : "0"), lane(state, Concat("v + ", half)));
    }
    writer_.Close();
    count = half;
  }
  for (const State& state : states) {
    const auto& fields = state.accumulator.fields();
    for (size_t field = 0; field < fields.size(); ++field) {
      writer_.Line(Concat(fields[field].type, " ", Scalar(state)(field), " = ",
                          lane(state, "0")(field), ";"));
    }
  }
}

void StagePrinter::MergeThreads(std::vector<State>& states) {
  if (map_.block == 1 && !is_block_tuned_) return;
  if (text().is_cuda()) return MergeWarps(states);
  MergeShared(states, threads_, "thread");
}

// Within warps by exchange, then every thread merges the warps' results in the
// same order: all end with the same value.
void StagePrinter::MergeWarps(std::vector<State>& states) {
  writer_.Unroll();
  writer_.Open("for (int mask = 16; mask > 0; mask /= 2)");
  for (const State& state : states) {
    const auto& fields = state.accumulator.fields();
    for (size_t field = 0; field < fields.size(); ++field) {
      const std::string name = Scalar(state)(field);
      writer_.Line(Concat("const ", fields[field].type, " ", name,
                          "_other = ", text().ShuffleXor(name, "mask"), ";"));
    }
    PrintMerge(state, Scalar(state), [&](size_t field) { return Scalar(state)(field) + "_other"; });
  }
  writer_.Close();
  if (map_.block == 32 && !is_block_tuned_) return;
  const auto shared = [](const State& state, const std::string& at) -> Accumulator::Access {
    return [&state, at](size_t field) {
      return Concat(state.name, state.accumulator.fields()[field].suffix, "_warp[", at, "]");
    };
  };
  const auto each_field = [&](const std::function<void(const State&, size_t)>& visit) {
    for (const State& state : states) {
      for (size_t field = 0; field < state.accumulator.fields().size(); ++field) {
        visit(state, field);
      }
    }
  };
  each_field([&](const State& state, size_t field) {
    writer_.Line(text().SharedArray(state.accumulator.fields()[field].type,
                                    Scalar(state)(field) + "_warp", "32"));
  });
  writer_.Open("if (thread % 32 == 0)");
  each_field([&](const State& state, size_t field) {
    writer_.Line(Concat(shared(state, "thread / 32")(field), " = ", Scalar(state)(field), ";"));
  });
  writer_.Close();
  writer_.Barrier();
  each_field([&](const State& state, size_t field) {
    writer_.Line(Concat(Scalar(state)(field), " = ", shared(state, "0")(field), ";"));
  });
  writer_.Open(Concat("for (int warp = 1; warp < ", threads_, " / 32; ++warp)"));
  for (const State& state : states) PrintMerge(state, Scalar(state), shared(state, "warp"));
  writer_.Close();
}

// A tree in shared memory over `threads`, a power of two.
void StagePrinter::MergeShared(std::vector<State>& states, const std::string& threads,
                               const std::string& thread) {
  const auto shared = [](const State& state, const std::string& at) -> Accumulator::Access {
    return [&state, at](size_t field) {
      return Concat(state.name, state.accumulator.fields()[field].suffix, "_all[", at, "]");
    };
  };
  for (const State& state : states) {
    const auto& fields = state.accumulator.fields();
    for (size_t field = 0; field < fields.size(); ++field) {
      writer_.Line(text().SharedArray(fields[field].type, Scalar(state)(field) + "_all", threads));
      writer_.Line(Concat(shared(state, thread)(field), " = ", Scalar(state)(field), ";"));
    }
  }
  writer_.Barrier();
  writer_.Open(Concat("for (int half_count = ", threads, " / 2; half_count > 0; half_count /= 2)"));
  writer_.Open(Concat("if (", thread, " < half_count)"));
  for (const State& state : states) {
    PrintMerge(state, shared(state, thread), shared(state, thread + " + half_count"));
  }
  writer_.Close();
  writer_.Barrier();
  writer_.Close();
  for (const State& state : states) {
    for (size_t field = 0; field < state.accumulator.fields().size(); ++field) {
      writer_.Line(Concat(Scalar(state)(field), " = ", shared(state, "0")(field), ";"));
    }
  }
}

// The same over the slices of columns that threads with equal rows hold.
void StagePrinter::MergeDepth(std::vector<State>& states) {
  const int64_t width = map_.block / map_.depth * lanes_;
  const auto shared = [&](const State& state, const std::string& slice) -> Accumulator::Access {
    const std::string at =
        has_lanes() ? Concat("(", slice, ") * ", width, " + thread % ", map_.block / map_.depth,
                             " * ", lanes_, " + v")
                    : Concat("(", slice, ") * ", width, " + thread % ", map_.block / map_.depth);
    return [&state, at](size_t field) {
      return Concat(state.name, state.accumulator.fields()[field].suffix, "_all[", at, "]");
    };
  };
  const auto each_lane = [&](const std::function<void(const State&, size_t)>& visit) {
    if (has_lanes()) writer_.Open(Concat("for (int v = 0; v < ", lanes_, "; ++v)"));
    for (const State& state : states) {
      for (size_t field = 0; field < state.accumulator.fields().size(); ++field) {
        visit(state, field);
      }
    }
    if (has_lanes()) writer_.Close();
  };
  for (const State& state : states) {
    for (size_t field = 0; field < state.accumulator.fields().size(); ++field) {
      writer_.Line(text().SharedArray(state.accumulator.fields()[field].type,
                                      Scalar(state)(field) + "_all",
                                      std::to_string(width * map_.depth)));
    }
  }
  each_lane([&](const State& state, size_t field) {
    writer_.Line(Concat(shared(state, "slice")(field), " = ", Lane(state, "v")(field), ";"));
  });
  writer_.Barrier();
  writer_.Open(
      Concat("for (int half_count = ", map_.depth / 2, "; half_count > 0; half_count /= 2)"));
  writer_.Open("if (slice < half_count)");
  if (has_lanes()) writer_.Open(Concat("for (int v = 0; v < ", lanes_, "; ++v)"));
  for (const State& state : states) {
    PrintMerge(state, shared(state, "slice"), shared(state, "slice + half_count"));
  }
  if (has_lanes()) writer_.Close();
  writer_.Close();
  writer_.Barrier();
  writer_.Close();
  each_lane([&](const State& state, size_t field) {
    writer_.Line(Concat(Lane(state, "v")(field), " = ", shared(state, "0")(field), ";"));
  });
}

void StagePrinter::BindResults(const std::vector<State>& states) {
  for (const State& state : states) {
    const Loop& loop = state.accumulator.loop();
    for (size_t result = 0; result < loop.results.size(); ++result) {
      const size_t field = state.accumulator.needs_index() || loop.results.size() == 2 ? result : 0;
      const bool in_lanes = by_row() && has_lanes() && role_ != Role::kCombine;
      const std::string name = in_lanes ? Lane(state, "v")(field) : Scalar(state)(field);
      if (in_lanes) {
        lane_results_.emplace_back(loop.results[result], name);
      } else {
        writer_.Bind(loop.results[result], name);
      }
    }
  }
}

void StagePrinter::BindLanes() {
  for (const auto& [value, name] : lane_results_) writer_.Bind(value, name);
}

void StagePrinter::StoreParts(const std::vector<State>& states) {
  const bool in_lanes = by_row() && has_lanes();
  if (!by_row() && Thread() != "0") writer_.Open("if (thread == 0)");
  if (by_row() && map_.depth > 1) writer_.Open("if (slice == 0)");
  if (in_lanes) writer_.Open(Concat("for (int v = 0; v < ", lanes_, "; ++v)"));
  const ScalarPtr piece = writer_.Axis("piece", map_.split);
  for (const State& state : states) {
    for (size_t field = 0; field < state.accumulator.fields().size(); ++field) {
      const std::vector<ScalarPtr> indices = {piece, row_};
      writer_.Store(PartName(view_, state.accumulator, field), indices,
                    in_lanes ? Lane(state, "v")(field) : Scalar(state)(field));
    }
  }
  if (in_lanes) writer_.Close();
  if (by_row() && map_.depth > 1) writer_.Close();
  if (!by_row() && Thread() != "0") writer_.Close();
}

void StagePrinter::CombineParts(std::vector<State>& states) {
  writer_.Open(LoopHead("piece", Thread(), map_.split, threads_));
  const ScalarPtr piece = writer_.Axis("piece", map_.split);
  const std::vector<ScalarPtr> indices = {piece, row_};
  for (const State& state : states) {
    std::vector<std::string> part;
    for (size_t field = 0; field < state.accumulator.fields().size(); ++field) {
      part.push_back(writer_.Value(PartName(view_, state.accumulator, field), indices));
    }
    PrintMerge(state, Scalar(state), [&part](size_t field) { return part[field]; });
  }
  writer_.Close();
}

// Maps with one element per row that elements will read, such as an inverse
// deviation: computed once, before the sweep that uses them.
void StagePrinter::TouchRowMaps() {
  if (role_ != Role::kWhole || stage_.full_outputs.empty() || stage_.space.columns() == 1) return;
  std::set<std::string> reached;
  std::vector<std::string> pending;
  for (const SweepPlan::FullOutput& output : stage_.full_outputs) pending.push_back(output.value);
  std::vector<std::string> maps;
  while (!pending.empty()) {
    const std::string name = pending.back();
    pending.pop_back();
    const Loop* loop = FindLoop(view_, name);
    if (loop == nullptr || loop->form != Loop::Form::kMap || !reached.insert(name).second) continue;
    if (loop->types[0].elements() == stage_.space.rows && !loop->is_movement) {
      maps.push_back(name);
    }
    for (const mtmc::kernel::Scalar* read : Reads(loop->body)) pending.push_back(read->tensor);
  }
  std::reverse(maps.begin(), maps.end());
  loads_.clear();
  for (const std::string& name : maps) {
    const std::vector<ScalarPtr> indices = RowIndices(name);
    if (!by_row() || !has_lanes()) {
      writer_.Value(name, indices);
      continue;
    }
    const std::string array = writer_.Fresh(name + "_lane");
    writer_.Line(
        Concat(text().ComputeType(TypeOf(view_, name).data_type), " ", array, "[", lanes_, "];"));
    OpenLane();
    for (const RowArray& known : row_arrays_) writer_.Bind(known.value, known.indices, known.text);
    writer_.Line(Concat(array, "[v] = ", writer_.Value(name, indices), ";"));
    CloseLane();
    row_arrays_.push_back({name, indices, array + "[v]"});
  }
}

void StagePrinter::StoreRows() {
  if (stage_.row_outputs.empty()) return;
  const bool combines = role_ == Role::kCombine;
  const bool in_lanes = by_row() && has_lanes() && !combines;
  const bool one_thread = (!by_row() || combines) && Thread() != "0";
  const bool one_slice = by_row() && !combines && map_.depth > 1;
  if (one_thread) writer_.Open("if (thread == 0)");
  if (one_slice) writer_.Open("if (slice == 0)");
  loads_.clear();
  if (in_lanes) OpenLane();
  for (const std::string& value : stage_.row_outputs) {
    const std::vector<ScalarPtr> indices = RowIndices(value);
    writer_.Store(value, indices, writer_.Value(value, indices));
  }
  if (in_lanes) CloseLane();
  if (one_slice) writer_.Close();
  if (one_thread) writer_.Close();
}

void StagePrinter::StoreElements() {
  std::vector<ScalarPtr> roots;
  for (const SweepPlan::FullOutput& output : stage_.full_outputs) {
    roots.push_back(
        Read(output.value, FullIndices(output.indices), TypeOf(view_, output.value).data_type));
  }
  OpenElements(roots);
  std::vector<bool> is_wide;
  for (const SweepPlan::FullOutput& output : stage_.full_outputs) {
    const TensorType& type = TypeOf(view_, output.value);
    const std::vector<ScalarPtr> indices = FullIndices(output.indices);
    const ElementRead place{.tensor = output.value,
                            .indices = indices,
                            .offset = OffsetOf(type, indices, writer_.extents())};
    is_wide.push_back(has_lanes() && IsWide(place));
    if (is_wide.back()) {
      writer_.Line(
          Concat(text().ComputeType(type.data_type), " ", output.value, "_out_v[", lanes_, "];"));
    }
  }
  OpenLane();
  for (const RowArray& known : row_arrays_) writer_.Bind(known.value, known.indices, known.text);
  for (size_t i = 0; i < stage_.full_outputs.size(); ++i) {
    const SweepPlan::FullOutput& output = stage_.full_outputs[i];
    const std::vector<ScalarPtr> indices = FullIndices(output.indices);
    const std::string value = writer_.Value(output.value, indices);
    if (is_wide[i]) {
      writer_.Line(Concat(output.value, "_out_v[v] = ", value, ";"));
    } else {
      writer_.Store(output.value, indices, value);
    }
  }
  CloseLane();
  for (size_t i = 0; i < stage_.full_outputs.size(); ++i) {
    if (!is_wide[i]) continue;
    const SweepPlan::FullOutput& output = stage_.full_outputs[i];
    const ScalarPtr offset =
        OffsetOf(TypeOf(view_, output.value), FullIndices(output.indices), writer_.extents());
    writer_.StoreVector(output.value, Sub(offset, lane_), output.value + "_out_v",
                        static_cast<int>(lanes_));
  }
  CloseElements();
}

// Prints the kernel of a stage without reductions: a thread per element.
absl::StatusOr<EmittedStep> PrintMaps(const GroupView& view, const EmitTarget& target,
                                      const SweepPlan::Stage& stage, const std::string& value,
                                      const std::string& name) {
  SweepPlan::Stage own = stage;
  own.map_outputs = {value};
  KernelWriter writer(view, target, {}, name);
  for (const std::string& input : ReadsOf(view, own)) writer.AddParameter(input, false);
  writer.AddParameter(value, true);
  const TensorType& type = TypeOf(view, value);
  const int64_t elements = type.elements();
  const bool is_gpu = target.warp_size > 1;
  // On a CPU a block is a loop over neighbours that its compiler vectorizes.
  const int64_t block = std::min<int64_t>(is_gpu ? 256 : 1024, target.max_threads_per_block);
  const DialectText& text = writer.text();
  const std::string wide =
      elements > INT32_MAX ? Concat("(", text.ComputeType(DataType::kI64), ")") : "";
  const ScalarPtr i = writer.Declare(
      "i", elements, Concat(wide, text.BlockId(0), " * ", block, " + ", text.ThreadId(0)));
  if (elements % block != 0) {
    writer.Open(Concat("if (i < ", text.IntegerLiteral(elements, DataType::kI64), ")"));
  }
  const std::vector<ScalarPtr> indices = IndicesOf(type, i, writer.extents());
  writer.Store(value, indices, writer.Value(value, indices));
  if (elements % block != 0) writer.Close();
  return writer.Finish(
      {.grid = {Concat("ceil_div(", std::max<int64_t>(elements, 1), ", ", block, ")")},
       .block = {std::to_string(block)}});
}

int64_t KnobOf(const GroupView& view, std::string_view knob, int64_t otherwise) {
  const auto found = view.group->knobs.find(knob);
  return found == view.group->knobs.end() ? otherwise : found->second;
}

int64_t LargestDivisor(int64_t value, int64_t most) {
  for (int64_t divisor = std::min(value, most); divisor > 1; --divisor) {
    if (value % divisor == 0) return divisor;
  }
  return 1;
}

}  // namespace

RowMapping FitMapping(const GroupView& view, const EmitTarget& target,
                      const SweepPlan::Stage& stage, const std::vector<std::string>& tuned) {
  const RowSpace& space = stage.space;
  const bool is_gpu = target.warp_size > 1;
  RowMapping mapping{.by_row = KnobOf(view, "by_row", space.rows_are_contiguous ? 1 : 0),
                     .block = KnobOf(view, "block", is_gpu ? 256 : 1),
                     .vector = KnobOf(view, "vector", 1),
                     .depth = KnobOf(view, "depth", 1),
                     .split = KnobOf(view, "split", 1),
                     .cache = KnobOf(view, "cache", 0)};
  mapping.block = std::clamp<int64_t>(mapping.block, is_gpu ? 32 : 1, target.max_threads_per_block);
  const int64_t run = mapping.by_row != 0 ? space.row_run : space.inner;
  if (run % mapping.vector != 0) mapping.vector = LargestDivisor(run, mapping.vector);
  // Blocks whose size the sweep changes have no fixed slices or registers.
  const bool is_tuned = std::find(tuned.begin(), tuned.end(), "block") != tuned.end();
  if (mapping.by_row == 0 || is_tuned || mapping.block % mapping.depth != 0) mapping.depth = 1;
  if (is_tuned || !is_gpu) mapping.cache = 0;
  const int64_t columns = mapping.by_row != 0 ? space.columns() : space.columns() / mapping.vector;
  mapping.split = std::clamp<int64_t>(mapping.split, 1, columns);
  if (mapping.cache != 0) {
    const int64_t step = mapping.by_row != 0 ? mapping.depth : mapping.block;
    if (CeilDiv(columns, step) * mapping.vector > kMostCachedElements) mapping.cache = 0;
  }
  return mapping;
}

absl::StatusOr<Emission> EmitStage(const GroupView& view, const EmitTarget& target,
                                   const std::vector<std::string>& tuned,
                                   const SweepPlan::Stage& stage, size_t index) {
  using Role = StagePrinter::Role;
  Emission emission;
  const std::string base = index == 0 ? view.group->name : Concat(view.group->name, "_", index + 1);
  if (stage.levels.empty()) {
    for (size_t i = 0; i < stage.map_outputs.size(); ++i) {
      MTMC_ASSIGN_OR_RETURN(EmittedStep step, PrintMaps(view, target, stage, stage.map_outputs[i],
                                                        Concat(base, i == 0 ? "" : "_",
                                                               i == 0 ? "" : std::to_string(i))));
      emission.steps.push_back(std::move(step));
    }
    return emission;
  }
  const RowMapping mapping = FitMapping(view, target, stage, tuned);
  if (mapping.split == 1) {
    MTMC_ASSIGN_OR_RETURN(
        EmittedStep step,
        StagePrinter(view, target, tuned, stage, mapping, Role::kWhole, base).Print());
    emission.steps.push_back(std::move(step));
    return emission;
  }
  for (const Loop* loop : stage.levels[0]) {
    const Accumulator accumulator(*loop, DialectText(target.dialect));
    for (size_t field = 0; field < accumulator.fields().size(); ++field) {
      emission.buffers.push_back(
          {.role = Tensor::Role::kBuffer,
           .name = PartName(view, accumulator, field),
           .type = PartType(accumulator, field, mapping.split, stage.space.rows)});
    }
  }
  MTMC_ASSIGN_OR_RETURN(
      EmittedStep partial,
      StagePrinter(view, target, tuned, stage, mapping, Role::kPartial, base + "_pieces").Print());
  emission.steps.push_back(std::move(partial));
  RowMapping combine = mapping;
  combine.block = target.warp_size > 1 ? 128 : 1;
  MTMC_ASSIGN_OR_RETURN(
      EmittedStep merged,
      StagePrinter(view, target, {}, stage, combine, Role::kCombine, base + "_total").Print());
  emission.steps.push_back(std::move(merged));
  return emission;
}

}  // namespace mtmc::kernel
