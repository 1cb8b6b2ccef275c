// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/row/row_kernel.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "common/base/status_macros.h"
#include "kernel/algebra/index_algebra.h"
#include "kernel/graph/text.h"
#include "kernel/templates/row/map_kernel.h"
#include "kernel/templates/row/row_loads.h"
#include "kernel/templates/row/row_mapping.h"
#include "kernel/templates/row/row_states.h"
#include "kernel/templates/row/row_walk.h"
#include "kernel/view/group_view.h"
#include "kernel/writer/accumulator.h"
#include "kernel/writer/kernel_writer.h"

namespace mtmc::kernel {
namespace {

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
        stage_(stage),
        role_(role),
        writer_(view, target, tuned, name),
        threads_(ThreadsOf(target, tuned, mapping)),
        loads_(view, threads_, writer_) {}

  absl::StatusOr<EmittedStep> Print();

 private:
  // A result, or a row map, that lives in a lane array.
  struct RowArray {
    std::string value;
    std::vector<ScalarPtr> indices;
    std::string text;
  };

  RowThreads ThreadsOf(const EmitTarget& target, const std::vector<std::string>& tuned,
                       const RowMapping& mapping) const;

  bool by_row() const { return threads_.by_row(); }

  bool has_lanes() const { return threads_.has_lanes(); }

  // Whether a row's results are in lane arrays.
  bool rows_in_lanes() const { return by_row() && has_lanes() && role_ != Role::kCombine; }

  DialectText text() const { return writer_.text(); }

  void AddParameters();
  void NameRowIndices();
  std::vector<ScalarPtr> Roots() const;
  void ReduceLevel(const std::vector<const Loop*>& level);
  void BindResults(const RowStates& states);
  void StoreParts(const RowStates& states);
  void CombineParts(RowStates& states);
  void TouchRowMaps();
  void StoreRows();
  void StoreElements();
  void OpenLane();
  void CloseLane();
  // Opens and closes the scope of the threads that store a row's values.
  int OpenRowOwners();
  void Close(int scopes);

  const TensorType& TypeOf(const std::string& value) const {
    return view_.nest->types.find(value)->second;
  }

  ScalarPtr BodyHere(const Loop& loop) const;

  std::vector<ScalarPtr> FullIndices(const std::vector<ScalarPtr>& indices) const {
    std::vector<ScalarPtr> full;
    for (const ScalarPtr& index : indices) {
      full.push_back(SubstituteAxes(index, {walk_->row(), walk_->column()}));
    }
    return full;
  }

  std::vector<ScalarPtr> RowIndices(const std::string& value) const {
    return IndicesOf(TypeOf(value), walk_->row(), writer_.extents());
  }

  const GroupView& view_;
  const SweepPlan::Stage& stage_;
  const Role role_;
  KernelWriter writer_;
  const RowThreads threads_;
  RowLoads loads_;
  // Set once the parameters are there, whose names come first.
  std::optional<RowWalk> walk_;
  std::vector<RowArray> row_arrays_;
  std::vector<std::pair<std::string, std::string>> lane_results_;
};

RowThreads StagePrinter::ThreadsOf(const EmitTarget& target, const std::vector<std::string>& tuned,
                                   const RowMapping& mapping) const {
  const bool is_tuned = std::find(tuned.begin(), tuned.end(), "block") != tuned.end();
  return {.map = mapping,
          .lanes = role_ == Role::kCombine ? 1 : mapping.vector,
          .count = is_tuned ? writer_.Knob("block") : std::to_string(mapping.block),
          .is_block_tuned = is_tuned,
          .is_gpu = !target.is_cpu()};
}

absl::StatusOr<EmittedStep> StagePrinter::Print() {
  using Part = RowWalk::Part;
  writer_.Reserve({"c", "distance", "half_count", "i", "k", "mask", "o", "piece", "row",
                   "row_chunk", "slice", "thread", "v", "warp"});
  AddParameters();
  walk_.emplace(stage_.space, threads_,
                role_ == Role::kWhole     ? Part::kWhole
                : role_ == Role::kPartial ? Part::kPiece
                                          : Part::kPieces,
                writer_);
  loads_.SetLane(walk_->lane());
  const bool reads_again = stage_.levels.size() > 1 || !stage_.full_outputs.empty();
  if (walk_->keeps() && reads_again) loads_.Keep(Roots(), walk_->step_axis(), walk_->steps());
  NameRowIndices();
  for (const std::vector<const Loop*>& level : stage_.levels) ReduceLevel(level);
  if (role_ != Role::kPartial) {
    TouchRowMaps();
    StoreRows();
    if (role_ == Role::kWhole && !stage_.full_outputs.empty()) StoreElements();
  }
  return writer_.Finish({.grid = {walk_->grid()}, .block = {threads_.count}});
}

void StagePrinter::AddParameters() {
  const auto add_parts = [&](bool is_written) {
    for (const Loop* loop : stage_.levels[0]) {
      const Accumulator accumulator(*loop, text());
      for (size_t field = 0; field < accumulator.fields().size(); ++field) {
        writer_.AddParameter(PartName(view_, accumulator, field),
                             PartType(accumulator, field, threads_.map.split, stage_.space.rows),
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

// Every expression that some sweep evaluates at its elements.
std::vector<ScalarPtr> StagePrinter::Roots() const {
  std::vector<ScalarPtr> roots;
  for (const std::vector<const Loop*>& level : stage_.levels) {
    for (const Loop* loop : level) roots.push_back(BodyHere(*loop));
  }
  for (const SweepPlan::FullOutput& output : stage_.full_outputs) {
    roots.push_back(
        Read(output.value, FullIndices(output.indices), TypeOf(output.value).data_type));
  }
  return roots;
}

// Divides the row into its parts once, before the loops that use them.
void StagePrinter::NameRowIndices() {
  if (role_ == Role::kCombine) return;
  std::vector<ScalarPtr> start;
  for (int axis = 0; axis < static_cast<int>(writer_.extents().size()); ++axis) {
    start.push_back(axis == walk_->row_axis() ? Axis(axis) : Index(0));
  }
  for (const ScalarPtr& root : Roots()) {
    for (const ElementRead& read : ElementReads(view_, root, writer_.extents())) {
      if (loads_.IsLoadable(read)) writer_.Index(SubstituteAxes(read.offset, start));
    }
  }
}

void StagePrinter::OpenLane() {
  if (has_lanes()) {
    if (threads_.is_gpu) writer_.Unroll();
    writer_.Open(Concat("for (int v = 0; v < ", threads_.lanes, "; ++v)"));
  }
  loads_.Bind();
  for (const auto& [value, name] : lane_results_) writer_.Bind(value, name);
}

void StagePrinter::CloseLane() {
  if (has_lanes()) writer_.Close();
}

int StagePrinter::OpenRowOwners() {
  const bool block_has_one_row = !by_row() || role_ == Role::kCombine;
  if (block_has_one_row && !threads_.is_alone()) {
    writer_.Open("if (thread == 0)");
    return 1;
  }
  if (!block_has_one_row && threads_.map.depth > 1) {
    writer_.Open("if (slice == 0)");
    return 1;
  }
  return 0;
}

void StagePrinter::Close(int scopes) {
  for (; scopes > 0; --scopes) writer_.Close();
}

ScalarPtr StagePrinter::BodyHere(const Loop& loop) const {
  return SubstituteAxes(loop.body, AxesAt(loop, walk_->row(), walk_->column(), writer_.extents()));
}

void StagePrinter::ReduceLevel(const std::vector<const Loop*>& level) {
  RowStates states(level, threads_, walk_->steps_in_a_row(), writer_);
  if (role_ == Role::kCombine) {
    CombineParts(states);
    states.MergeThreads();
    return BindResults(states);
  }
  std::vector<ScalarPtr> roots;
  for (const Loop* loop : level) roots.push_back(BodyHere(*loop));
  walk_->Open();
  loads_.Load(roots);
  states.CountElement();
  OpenLane();
  states.AddElement(walk_->row(), walk_->column());
  CloseLane();
  states.EndElement();
  walk_->Close();
  states.MergeBlock();
  if (role_ == Role::kPartial) return StoreParts(states);
  BindResults(states);
}

void StagePrinter::BindResults(const RowStates& states) {
  for (const RowStates::State& state : states.states()) {
    const Loop& loop = state.accumulator.loop();
    for (size_t result = 0; result < loop.results.size(); ++result) {
      const size_t field = state.accumulator.needs_index() || loop.results.size() == 2 ? result : 0;
      if (rows_in_lanes()) {
        lane_results_.emplace_back(loop.results[result], states.Lane(state, "v")(field));
      } else {
        writer_.Bind(loop.results[result], RowStates::Scalar(state)(field));
      }
    }
  }
}

void StagePrinter::StoreParts(const RowStates& states) {
  const int scopes = OpenRowOwners();
  if (rows_in_lanes()) writer_.Open(Concat("for (int v = 0; v < ", threads_.lanes, "; ++v)"));
  const ScalarPtr piece = writer_.Axis("piece", threads_.map.split);
  const std::vector<ScalarPtr> indices = {piece, walk_->row()};
  for (const RowStates::State& state : states.states()) {
    for (size_t field = 0; field < state.accumulator.fields().size(); ++field) {
      writer_.Store(
          PartName(view_, state.accumulator, field), indices,
          rows_in_lanes() ? states.Lane(state, "v")(field) : RowStates::Scalar(state)(field));
    }
  }
  if (rows_in_lanes()) writer_.Close();
  Close(scopes);
}

// Each thread merges the pieces that it strides over.
void StagePrinter::CombineParts(RowStates& states) {
  writer_.Open(Concat("for (int piece = ", threads_.index(), "; piece < ", threads_.map.split, "; ",
                      threads_.count == "1" ? "++piece" : Concat("piece += ", threads_.count),
                      ")"));
  const ScalarPtr piece = writer_.Axis("piece", threads_.map.split);
  const std::vector<ScalarPtr> indices = {piece, walk_->row()};
  for (const RowStates::State& state : states.states()) {
    std::vector<std::string> part;
    for (size_t field = 0; field < state.accumulator.fields().size(); ++field) {
      part.push_back(writer_.Value(PartName(view_, state.accumulator, field), indices));
    }
    states.Merge(state, RowStates::Scalar(state), [&part](size_t field) { return part[field]; });
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
  loads_.Clear();
  for (const std::string& name : maps) {
    const std::vector<ScalarPtr> indices = RowIndices(name);
    if (!by_row() || !has_lanes()) {
      writer_.Value(name, indices);
      continue;
    }
    const std::string array = writer_.Fresh(name + "_lane");
    writer_.Line(
        Concat(text().ComputeType(TypeOf(name).data_type), " ", array, "[", threads_.lanes, "];"));
    OpenLane();
    for (const RowArray& known : row_arrays_) writer_.Bind(known.value, known.indices, known.text);
    writer_.Line(Concat(array, "[v] = ", writer_.Value(name, indices), ";"));
    CloseLane();
    row_arrays_.push_back({name, indices, array + "[v]"});
  }
}

void StagePrinter::StoreRows() {
  if (stage_.row_outputs.empty()) return;
  const int scopes = OpenRowOwners();
  loads_.Clear();
  if (rows_in_lanes()) OpenLane();
  for (const std::string& value : stage_.row_outputs) {
    const std::vector<ScalarPtr> indices = RowIndices(value);
    writer_.Store(value, indices, writer_.Value(value, indices));
  }
  if (rows_in_lanes()) CloseLane();
  Close(scopes);
}

void StagePrinter::StoreElements() {
  std::vector<ScalarPtr> roots;
  for (const SweepPlan::FullOutput& output : stage_.full_outputs) {
    roots.push_back(
        Read(output.value, FullIndices(output.indices), TypeOf(output.value).data_type));
  }
  walk_->Open();
  loads_.Load(roots);
  std::vector<bool> is_wide;
  for (const SweepPlan::FullOutput& output : stage_.full_outputs) {
    const TensorType& type = TypeOf(output.value);
    const std::vector<ScalarPtr> indices = FullIndices(output.indices);
    const ElementRead place{.tensor = output.value,
                            .indices = indices,
                            .offset = OffsetOf(type, indices, writer_.extents())};
    is_wide.push_back(has_lanes() && loads_.IsWide(place));
    if (is_wide.back()) {
      writer_.Line(Concat(text().ComputeType(type.data_type), " ", output.value, "_out_v[",
                          threads_.lanes, "];"));
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
        OffsetOf(TypeOf(output.value), FullIndices(output.indices), writer_.extents());
    writer_.StoreVector(output.value, Sub(offset, walk_->lane()), output.value + "_out_v",
                        static_cast<int>(threads_.lanes));
  }
  walk_->Close();
}

}  // namespace

absl::StatusOr<Emission> EmitStage(const GroupView& view, const EmitTarget& target,
                                   const std::vector<std::string>& tuned,
                                   const SweepPlan::Stage& stage, size_t index) {
  using Role = StagePrinter::Role;
  Emission emission;
  const std::string base = index == 0 ? view.group->name : Concat(view.group->name, "_", index + 1);
  if (stage.levels.empty()) {
    for (size_t i = 0; i < stage.map_outputs.size(); ++i) {
      MTMC_ASSIGN_OR_RETURN(EmittedStep step, EmitMap(view, target, stage, stage.map_outputs[i],
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
  combine.block = !target.is_cpu() ? 128 : 1;
  MTMC_ASSIGN_OR_RETURN(
      EmittedStep merged,
      StagePrinter(view, target, {}, stage, combine, Role::kCombine, base + "_total").Print());
  emission.steps.push_back(std::move(merged));
  return emission;
}

}  // namespace mtmc::kernel
