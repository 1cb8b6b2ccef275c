// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/scan/scan_template.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "kernel/algebra/index_algebra.h"
#include "kernel/algebra/scalar_key.h"
#include "kernel/graph/text.h"
#include "kernel/templates/starting_steps.h"
#include "kernel/view/group_view.h"
#include "kernel/writer/kernel_writer.h"

namespace mtmc::kernel {
namespace {

// The only scan of the group; null when there is none or more.
const Loop* FindScan(const GroupView& view) {
  const Loop* scan = nullptr;
  for (const Loop* loop : view.loops) {
    if (loop->form == Loop::Form::kMap) continue;
    if (loop->form != Loop::Form::kScan || scan != nullptr) return nullptr;
    scan = loop;
  }
  return scan;
}

// Whether the output has the scan's shape and reads its result nowhere else than
// at its own element.
bool IsAligned(const GroupView& view, const Loop& scan, const std::string& value) {
  const TensorType& type = TypeOf(view, value);
  if (type.shape != scan.extents) return false;
  const std::vector<ScalarPtr> axes = Axes(static_cast<int>(scan.extents.size()));
  const std::string own = KeyOf(OffsetOf(type, axes, scan.extents));
  const ScalarPtr root = Read(value, axes, type.data_type);
  for (const ElementRead& read : ElementReads(view, root, scan.extents)) {
    if (read.tensor == scan.results[0] && KeyOf(read.offset) != own) return false;
  }
  return true;
}

// Elements of the scanned axis, and what lies outside and inside it.
struct ScanSpace {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;

  int64_t rows() const { return outer * inner; }
};

ScanSpace SpaceOf(const Loop& scan) {
  ScanSpace space;
  for (size_t axis = 0; axis < scan.extents.size(); ++axis) {
    int64_t& part = static_cast<int>(axis) < scan.scan_axis    ? space.outer
                    : static_cast<int>(axis) == scan.scan_axis ? space.length
                                                               : space.inner;
    part *= scan.extents[axis];
  }
  return space;
}

struct ScanKnobs {
  // A thread per row; 0 for a block per row, tile by tile.
  int64_t by_row = 1;
  // Threads of a block, and elements of a thread in a tile.
  int64_t block = 1;
  int64_t vector = 1;
};

using ScanTable = TypedKnobTable<ScanKnobs>;

class ScanPrinter {
 public:
  ScanPrinter(const GroupView& view, const EmitTarget& target, const ScanKnobs& knobs,
              const std::vector<std::string>& tuned)
      : view_(view),
        scan_(*FindScan(view)),
        space_(SpaceOf(scan_)),
        writer_(view, target, tuned, view.group->name),
        is_sum_(scan_.combiner == Combiner::kSum),
        identity_(is_sum_ ? "0" : "1"),
        operation_(is_sum_ ? " + " : " * "),
        type_(writer_.text().ComputeType(scan_.body->type)),
        by_row_(knobs.by_row != 0),
        block_(knobs.block),
        vector_(knobs.vector) {}

  absl::StatusOr<EmittedStep> Print() {
    writer_.Reserve({"c", "distance", "i", "k", "row", "thread", "tile", "v", "warp"});
    for (const std::string& value : view_.inputs) writer_.AddParameter(value, false);
    for (const std::string& value : view_.outputs) writer_.AddParameter(value, true);
    by_row_ ? PrintByRow() : PrintTiles();
    return writer_.Finish({.grid = {grid_}, .block = {std::to_string(block_)}});
  }

 private:
  // Indices of element `k` of a row.
  std::vector<ScalarPtr> At(const ScalarPtr& row, const ScalarPtr& k) const {
    const ScalarPtr outer = FloorDiv(row, space_.inner);
    const ScalarPtr inner = Mod(row, space_.inner);
    const ScalarPtr offset =
        Add(Mul(Add(Mul(outer, Index(space_.length)), k), Index(space_.inner)), inner);
    return IndicesOf(scan_.types[0], offset, writer_.extents());
  }

  void StoreOutputs(const std::vector<ScalarPtr>& indices, const std::string& scanned) {
    writer_.Bind(scan_.results[0], indices, scanned);
    for (const std::string& value : view_.outputs) {
      writer_.Store(value, indices, writer_.Value(value, indices));
    }
  }

  // One thread walks along a row; neighbouring threads take neighbouring rows.
  void PrintByRow() {
    const DialectText& text = writer_.text();
    const ScalarPtr row = writer_.Declare(
        "row", space_.rows(), Concat(text.BlockId(0), " * ", block_, " + ", text.ThreadId(0)));
    grid_ = Concat("ceil_div(", space_.rows(), ", ", block_, ")");
    const bool is_exact = space_.rows() % block_ == 0;
    if (!is_exact) writer_.Open(Concat("if (row < ", space_.rows(), ")"));
    writer_.Line(Concat(type_, " running = ", identity_, ";"));
    const ScalarPtr k = writer_.Axis("k", space_.length);
    writer_.Open(Concat("for (int k = 0; k < ", space_.length, "; ++k)"));
    const std::vector<ScalarPtr> indices = At(row, k);
    writer_.Line(Concat("running = running", operation_, writer_.Body(scan_.body, indices), ";"));
    StoreOutputs(indices, "running");
    writer_.Close();
    if (!is_exact) writer_.Close();
  }

  // A block scans a row tile by tile: each thread its own few elements, then the
  // threads' totals in shared memory (Hillis and Steele), with the sum of all
  // tiles before carried along.
  void PrintTiles() {
    const DialectText& text = writer_.text();
    const ScalarPtr row = writer_.Declare("row", space_.rows(), text.BlockId(0));
    grid_ = std::to_string(space_.rows());
    const int64_t chunks = space_.length / vector_;
    const int64_t tiles = (chunks + block_ - 1) / block_;
    writer_.Line(Concat("const int thread = ", text.ThreadId(0), ";"));
    writer_.Line(text.SharedArray(type_, "totals", std::to_string(block_)));
    writer_.Line(Concat(type_, " carry = ", identity_, ";"));
    const ScalarPtr c = writer_.Axis("c", chunks);
    const ScalarPtr v = writer_.Axis("v", vector_);
    const std::vector<ScalarPtr> indices = At(row, Add(Mul(c, Index(vector_)), v));
    const std::string is_inside = chunks % block_ == 0 ? "" : Concat("if (c < ", chunks, ")");
    const auto open_lane = [&] {
      writer_.Unroll();
      writer_.Open(Concat("for (int v = 0; v < ", vector_, "; ++v)"));
    };
    writer_.Open(Concat("for (int tile = 0; tile < ", tiles, "; ++tile)"));
    writer_.Line(Concat("const int c = tile * ", block_, " + thread;"));
    writer_.Line(Concat(type_, " running[", vector_, "];"));
    writer_.Line(Concat(type_, " total = ", identity_, ";"));
    writer_.Open(is_inside);
    open_lane();
    writer_.Line(Concat("total = total", operation_, writer_.Body(scan_.body, indices), ";"));
    writer_.Line("running[v] = total;");
    writer_.Close();
    writer_.Close();
    writer_.Line("totals[thread] = total;");
    writer_.Barrier();
    writer_.Open(Concat("for (int distance = 1; distance < ", block_, "; distance *= 2)"));
    writer_.Line(Concat("const ", type_,
                        " before = thread >= distance ? totals[thread - distance] : ", identity_,
                        ";"));
    writer_.Barrier();
    writer_.Line(Concat("totals[thread] = totals[thread]", operation_, "before;"));
    writer_.Barrier();
    writer_.Close();
    writer_.Line(Concat("const ", type_, " start = thread > 0 ? carry", operation_,
                        "totals[thread - 1] : carry;"));
    writer_.Open(is_inside);
    open_lane();
    writer_.Line(Concat("const ", type_, " scanned = start", operation_, "running[v];"));
    StoreOutputs(indices, "scanned");
    writer_.Close();
    writer_.Close();
    writer_.Line(Concat("carry = carry", operation_, "totals[", block_ - 1, "];"));
    writer_.Barrier();
    writer_.Close();
  }

  const GroupView& view_;
  const Loop& scan_;
  const ScanSpace space_;
  KernelWriter writer_;
  const bool is_sum_;
  const std::string identity_;
  const std::string operation_;
  const std::string type_;
  const bool by_row_;
  const int64_t block_;
  const int64_t vector_;
  std::string grid_;
};

ScanKnobs DefaultsOf(const GroupView& view, const EmitTarget& target) {
  const ScanSpace space = SpaceOf(*FindScan(view));
  const bool by_row = target.is_cpu() || space.inner > 1;
  const int64_t most = std::min<int64_t>(target.max_threads_per_block, target.is_cpu() ? 16 : 128);
  int64_t block = by_row && space.inner == 1 ? 1 : most;
  while (by_row && block > 1 && block > space.rows()) block /= 2;
  return {.by_row = by_row ? 1 : 0, .block = block};
}

absl::Status CheckKnobs(const ScanKnobs& knobs, const GroupView& view, const EmitTarget& target) {
  const Loop& scan = *FindScan(view);
  if (knobs.block > target.max_threads_per_block) {
    return BadKnob("block", knobs.block, Concat("at most ", target.max_threads_per_block));
  }
  if (SpaceOf(scan).length % knobs.vector != 0) {
    return BadKnob("vector", knobs.vector,
                   Concat("a divisor of the ", SpaceOf(scan).length, " elements of a row"));
  }
  // A total of each thread; the widest type of a sum has eight bytes.
  const int64_t most = target.static_shared_bytes() / 8;
  if (knobs.by_row == 0 && knobs.block > most) {
    return BadKnob("block", knobs.block, Concat("at most ", most, " where a block has a row"));
  }
  return absl::OkStatus();
}

std::function<absl::Status(const ScanKnobs&)> LegalityOf(const GroupView& view,
                                                         const EmitTarget& target) {
  return [&](const ScanKnobs& knobs) { return CheckKnobs(knobs, view, target); };
}

std::vector<ScanTable::Step> StepsFrom(const ScanKnobs& now, const GroupView&, const EmitTarget&) {
  std::vector<ScanTable::Step> steps;
  const auto add = [&](int64_t ScanKnobs::*field, int64_t value, std::string text) {
    ScanTable::Step step{.text = std::move(text), .knobs = now};
    step.knobs.*field = value;
    steps.push_back(std::move(step));
  };
  const bool by_row = now.by_row != 0;
  if (!by_row) {
    for (const int64_t width : {4, 8, 2, 1}) {
      add(&ScanKnobs::vector, width, Concat("over ", width, " elements per thread"));
    }
  }
  for (const int64_t block : {256, 128, 512, 64, 32, 16, 1}) {
    // One thread has nobody to share a row with.
    if (!by_row && block == 1) continue;
    add(&ScanKnobs::block, block, Concat("to ", block, " threads per block"));
  }
  if (by_row && now.block > 1) add(&ScanKnobs::by_row, 0, "to a block per row, tile by tile");
  if (!by_row) add(&ScanKnobs::by_row, 1, "to a thread per row");
  return steps;
}

const ScanTable& Table() {
  static const auto* const table = new ScanTable(
      {.rows = {{{"by_row", "reorder", {.least = 0, .most = 1}}, &ScanKnobs::by_row},
                {{"block", "tile", {.least = 1, .most = 65536}}, &ScanKnobs::block},
                {{"vector", "vectorize", {.least = 1, .most = 16}}, &ScanKnobs::vector}},
       .defaults = DefaultsOf,
       .legality = LegalityOf,
       .steps = StepsFrom});
  return *table;
}

bool Accepts(const GroupView& view, const EmitTarget& /*target*/) {
  const Loop* scan = FindScan(view);
  if (scan == nullptr || view.outputs.empty() || scan->types[0].elements() == 0) return false;
  if (scan->combiner != Combiner::kSum && scan->combiner != Combiner::kProduct) return false;
  // The element must not need the scan itself.
  for (const ElementRead& read : ElementReads(view, scan->body, scan->extents)) {
    if (read.tensor == scan->results[0]) return false;
  }
  return std::all_of(view.outputs.begin(), view.outputs.end(),
                     [&](const std::string& value) { return IsAligned(view, *scan, value); });
}

Knobs StartingKnobs(const GroupView& view, const EmitTarget& target) {
  StartingSteps steps(view, target, Table());
  steps.Widen();
  return steps.knobs();
}

absl::StatusOr<Emission> Print(const GroupView& view, const EmitTarget& target,
                               const std::vector<std::string>& tuned) {
  Emission emission;
  MTMC_ASSIGN_OR_RETURN(EmittedStep step,
                        ScanPrinter(view, target, Table().Read(view), tuned).Print());
  emission.steps.push_back(std::move(step));
  return emission;
}

}  // namespace

const KernelTemplate kScanTemplate = {
    .name = "scan",
    .accepts = Accepts,
    .knobs = []() -> const KnobTable& { return Table(); },
    .starting_knobs = StartingKnobs,
    .cost = CostOfSweeps,
    .print = Print,
};

}  // namespace mtmc::kernel
