// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/pointwise/pointwise_template.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "kernel/graph/text.h"
#include "kernel/templates/pointwise/turned_order.h"
#include "kernel/templates/starting_steps.h"
#include "kernel/view/group_view.h"
#include "kernel/writer/kernel_writer.h"
#include "kernel/writer/lane_loads.h"

namespace mtmc::kernel {
namespace {

int64_t ElementsOf(const GroupView& view) { return TypeOf(view, view.outputs[0]).elements(); }

// Bytes of the widest element the group moves: the vector width follows it.
int64_t WidestElement(const GroupView& view) {
  int64_t widest = 1;
  for (const std::string& value : view.inputs) {
    widest = std::max(widest, SizeOf(TypeOf(view, value).data_type));
  }
  for (const std::string& value : view.outputs) {
    widest = std::max(widest, SizeOf(TypeOf(view, value).data_type));
  }
  return widest;
}

struct PointwiseKnobs {
  // Threads of a block, elements of a thread's access, and accesses of a thread.
  int64_t block = 1;
  int64_t vector = 1;
  int64_t items = 1;
  // Whether threads follow the order in which inputs lie, instead of the outputs'.
  int64_t turned = 0;
};

using PointwiseTable = TypedKnobTable<PointwiseKnobs>;

// Prints one kernel: the chunk of elements of a thread, its loads, the lanes, its stores.
class PointwisePrinter {
 public:
  PointwisePrinter(const GroupView& view, const EmitTarget& target, const PointwiseKnobs& knobs,
                   const std::vector<std::string>& tuned)
      : view_(view),
        writer_(view, target, tuned, view.group->name),
        lanes_(static_cast<int>(knobs.vector)),
        turned_(knobs.turned != 0 ? FindTurnedOrder(view) : TurnedOrder()),
        items_(knobs.items),
        block_(knobs.block),
        is_block_tuned_(std::find(tuned.begin(), tuned.end(), "block") != tuned.end()),
        is_items_tuned_(std::find(tuned.begin(), tuned.end(), "items") != tuned.end()) {}

  absl::StatusOr<EmittedStep> Print() {
    writer_.Reserve({"i", "chunk", "item", "block", "thread", "tile", "in_tile", "v"});
    for (const std::string& value : view_.inputs) writer_.AddParameter(value, false);
    for (const std::string& value : view_.outputs) writer_.AddParameter(value, true);
    const int64_t chunks = ElementsOf(view_) / lanes_;
    const std::string block = writer_.Knob("block");
    const std::string items = writer_.Knob("items");
    const bool has_items = items_ > 1 || is_items_tuned_;
    const bool is_exact = !is_block_tuned_ && !is_items_tuned_ && chunks % (block_ * items_) == 0;
    if (has_items) {
      writer_.Unroll();
      writer_.Open(Concat("for (int item = 0; item < ", items, "; ++item)"));
    }
    ScalarPtr chunk = is_exact && !has_items && turned_.is_empty() && TakesIndexApart()
                          ? DeclareBlockAndThread(chunks)
                          : DeclareChunk(chunks, has_items);
    const std::string name = ChunkName();
    if (!is_exact) {
      writer_.Open(
          Concat("if (", name, " < ", writer_.text().IntegerLiteral(chunks, DataType::kI64), ")"));
    }
    if (!turned_.is_empty()) chunk = DeclareTurned(name);
    lanes_ == 1 ? PrintElement(chunk) : PrintChunk(chunk);
    if (!is_exact) writer_.Close();
    if (has_items) writer_.Close();
    const std::string per_block = has_items ? Concat(block, " * ", items) : block;
    return writer_.Finish(
        {.grid = {Concat("ceil_div(", std::max<int64_t>(chunks, 1), ", ", per_block, ")")},
         .block = {block}});
  }

 private:
  std::string ChunkName() const { return lanes_ == 1 ? "i" : "chunk"; }

  ScalarPtr DeclareChunk(int64_t chunks, bool has_items) {
    const std::string wide =
        chunks > INT32_MAX ? Concat("(", writer_.text().ComputeType(DataType::kI64), ")") : "";
    std::string definition = Concat(wide, writer_.text().BlockId(0));
    if (has_items) definition = Concat("(", definition, " * ", writer_.Knob("items"), " + item)");
    return writer_.Declare(
        ChunkName(), chunks,
        Concat(definition, " * ", writer_.Knob("block"), " + ", writer_.text().ThreadId(0)));
  }

  // Block and thread as axes of their own: where a block lies within one row, the algebra then
  // divides the block's number only, which is the same for all threads.
  ScalarPtr DeclareBlockAndThread(int64_t chunks) {
    const ScalarPtr block = writer_.Declare("block", chunks / block_, writer_.text().BlockId(0));
    const ScalarPtr thread = writer_.Declare("thread", block_, writer_.text().ThreadId(0));
    return Add(Mul(block, kernel::Index(block_)), thread);
  }

  // The chunk that is the thread's in turned order, as a sum over its places along the axes.
  ScalarPtr DeclareTurned(const std::string& number) {
    std::vector<int64_t> extents = turned_.extents;
    extents.back() /= lanes_;
    std::vector<ScalarPtr> places(extents.size());
    int64_t inner = 1;
    const auto declare = [&](const std::string& name, int64_t extent) {
      const std::string outer = inner == 1 ? number : Concat(number, " / ", inner);
      inner *= extent;
      return writer_.Declare(name, extent, Concat(outer, " % ", extent));
    };
    const auto fast = static_cast<size_t>(turned_.order.back());
    const ScalarPtr in_tile = declare("in_tile", turned_.tile);
    places.back() = declare(Concat("at_", extents.size() - 1), extents.back());
    const ScalarPtr tile = declare("tile", extents[fast] / turned_.tile);
    places[fast] = Add(Mul(tile, kernel::Index(turned_.tile)), in_tile);
    for (size_t i = turned_.order.size(); i-- > 0;) {
      const auto axis = static_cast<size_t>(turned_.order[i]);
      if (places[axis]) continue;
      places[axis] = declare(Concat("at_", axis), extents[axis]);
    }
    ScalarPtr chunk = kernel::Index(0);
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      chunk = Add(Mul(chunk, kernel::Index(extents[axis])), places[axis]);
    }
    return chunk;
  }

  // Whether some element's place needs a quotient of the flat index.
  bool TakesIndexApart() const {
    const std::vector<int64_t> extents = {ElementsOf(view_)};
    const ScalarPtr i = Axis(0);
    for (const std::string& value : view_.outputs) {
      const TensorType& type = TypeOf(view_, value);
      const ScalarPtr root = Read(value, IndicesOf(type, i, extents), type.data_type);
      for (const ElementRead& read : ElementReads(view_, root, extents)) {
        if (read.offset->kind == Scalar::Kind::kOperator) return true;
      }
    }
    return false;
  }

  void PrintElement(const ScalarPtr& i) {
    for (const std::string& value : view_.outputs) {
      const std::vector<ScalarPtr> indices = IndicesOf(TypeOf(view_, value), i, writer_.extents());
      const std::string text = writer_.Value(value, indices);
      writer_.Store(value, indices, text);
    }
  }

  void PrintChunk(const ScalarPtr& chunk) {
    const ScalarPtr lane = writer_.Axis("v", lanes_);
    const ScalarPtr first = Mul(chunk, kernel::Index(lanes_));
    const ScalarPtr element = Add(first, lane);
    std::vector<ScalarPtr> roots;
    for (const std::string& value : view_.outputs) {
      const TensorType& type = TypeOf(view_, value);
      roots.push_back(Read(value, IndicesOf(type, element, writer_.extents()), type.data_type));
    }
    const std::vector<LaneArray> arrays = PrintLaneLoads(writer_, view_, roots, lane, lanes_);
    for (const std::string& value : view_.outputs) {
      const std::string type = writer_.text().ComputeType(TypeOf(view_, value).data_type);
      writer_.Line(Concat(type, " ", value, "_v[", lanes_, "];"));
    }
    writer_.Unroll();
    writer_.Open(Concat("for (int v = 0; v < ", lanes_, "; ++v)"));
    BindLanes(writer_, arrays, "v");
    for (const std::string& value : view_.outputs) {
      const std::vector<ScalarPtr> indices =
          IndicesOf(TypeOf(view_, value), element, writer_.extents());
      const std::string text = writer_.Value(value, indices);
      writer_.Line(Concat(value, "_v[v] = ", text, ";"));
    }
    writer_.Close();
    for (const std::string& value : view_.outputs) {
      writer_.StoreVector(value, first, value + "_v", lanes_);
    }
  }

  const GroupView& view_;
  KernelWriter writer_;
  const int lanes_;
  // Empty where threads follow the outputs.
  const TurnedOrder turned_;
  const int64_t items_;
  const int64_t block_;
  const bool is_block_tuned_;
  const bool is_items_tuned_;
};

PointwiseKnobs DefaultsOf(const GroupView& view, const EmitTarget& target) {
  const int64_t most = std::min<int64_t>(target.max_threads_per_block, 256);
  int64_t block = 32;
  while (block < most && block < ElementsOf(view)) block *= 2;
  return {.block = std::min(block, most)};
}

absl::Status CheckKnobs(const PointwiseKnobs& knobs, const GroupView& view,
                        const EmitTarget& target) {
  if (knobs.block > target.max_threads_per_block) {
    return BadKnob("block", knobs.block, Concat("at most ", target.max_threads_per_block));
  }
  if (ElementsOf(view) % knobs.vector != 0) {
    return BadKnob("vector", knobs.vector,
                   Concat("a divisor of the group's ", ElementsOf(view), " elements"));
  }
  if (knobs.turned == 0) return absl::OkStatus();
  const TurnedOrder turned = FindTurnedOrder(view);
  if (target.is_cpu() || turned.is_empty()) {
    return BadKnob("turned", 1, "0 where inputs lie as outputs do, and on a CPU");
  }
  if (turned.extents.back() % knobs.vector != 0) {
    return BadKnob("vector", knobs.vector,
                   Concat("a divisor of the last extent, ", turned.extents.back()));
  }
  return absl::OkStatus();
}

// Elements of a thread that fill a sector of memory, at most.
int64_t RunOfSector(const GroupView& view, const TurnedOrder& turned) {
  constexpr int64_t kSectorBytes = 32;
  int64_t run = kSectorBytes / WidestElement(view);
  while (run > 1 && turned.extents.back() % run != 0) run /= 2;
  return run;
}

std::function<absl::Status(const PointwiseKnobs&)> LegalityOf(const GroupView& view,
                                                              const EmitTarget& target) {
  return [&](const PointwiseKnobs& knobs) { return CheckKnobs(knobs, view, target); };
}

// In turned order with runs of whole sectors of memory, where the last extent has them, and back.
void AddTurn(const PointwiseKnobs& now, const GroupView& view, const EmitTarget& target,
             std::vector<PointwiseTable::Step>& steps) {
  const TurnedOrder turned = FindTurnedOrder(view);
  if (target.is_cpu() || turned.is_empty()) return;
  PointwiseKnobs other = now;
  other.turned = now.turned == 0 ? 1 : 0;
  other.items = 1;
  other.vector = other.turned != 0 ? RunOfSector(view, turned) : 1;
  steps.push_back({.text = other.turned != 0 ? "in the order of what it reads"
                                             : "in the order of what it writes",
                   .knobs = other});
}

std::vector<PointwiseTable::Step> StepsFrom(const PointwiseKnobs& now, const GroupView& view,
                                            const EmitTarget& target) {
  std::vector<PointwiseTable::Step> steps;
  const auto add = [&](int64_t PointwiseKnobs::*field, int64_t value, std::string text) {
    PointwiseTable::Step step{.text = std::move(text), .knobs = now};
    step.knobs.*field = value;
    steps.push_back(std::move(step));
  };
  // On a CPU the compiler makes vectors across threads, unless a select of sources stops it:
  // then long runs of one thread help. A GPU thread moves 16 bytes, or half of that.
  const int64_t full = target.is_cpu() ? 16 : std::max<int64_t>(16 / WidestElement(view), 2);
  for (int64_t lanes : {full, full / 2, int64_t{1}}) {
    add(&PointwiseKnobs::vector, lanes,
        lanes == 1 ? "with single elements" : Concat("with ", lanes, " elements per access"));
  }
  for (int64_t items : {4, 1}) {
    const bool is_small = items * now.block * now.vector * 2 > ElementsOf(view);
    if (items > 1 && (is_small || target.is_cpu())) continue;
    add(&PointwiseKnobs::items, items,
        Concat("to ", items, items == 1 ? " access" : " accesses", " per thread"));
  }
  AddTurn(now, view, target, steps);
  return steps;
}

const PointwiseTable& Table() {
  static const auto* const table = new PointwiseTable(
      {.rows = {{{"turned", "reorder", {.least = 0, .most = 1}}, &PointwiseKnobs::turned},
                {{"block", "tile", {.least = 1, .most = 65536}},
                 &PointwiseKnobs::block,
                 [](const PointwiseKnobs&, const EmitTarget&) {
                   return std::vector<int64_t>{128, 256, 512, 1024};
                 }},
                {{"vector", "vectorize", {.least = 1, .most = 16, .is_power_of_two = true}},
                 &PointwiseKnobs::vector},
                {{"items", "tile", {.least = 1, .most = 16}},
                 &PointwiseKnobs::items,
                 [](const PointwiseKnobs&, const EmitTarget& target) {
                   return target.is_cpu() ? std::vector<int64_t>{} : std::vector<int64_t>{1, 2, 4};
                 }}},
       .defaults = DefaultsOf,
       .legality = LegalityOf,
       .steps = StepsFrom});
  return *table;
}

bool Accepts(const GroupView& view, const EmitTarget& /*target*/) {
  if (view.outputs.empty()) return false;
  const bool are_maps = std::all_of(view.loops.begin(), view.loops.end(), [](const Loop* loop) {
    return loop->form == Loop::Form::kMap;
  });
  const int64_t elements = ElementsOf(view);
  return are_maps && elements > 0 &&
         std::all_of(view.outputs.begin(), view.outputs.end(), [&](const std::string& value) {
           return TypeOf(view, value).elements() == elements;
         });
}

// A CPU's compiler makes vectors across the threads of a map by itself.
Knobs StartingKnobs(const GroupView& view, const EmitTarget& target) {
  StartingSteps steps(view, target, Table());
  if (!target.is_cpu()) {
    steps.Widen();
    steps.TakeFirst("reorder");
  }
  return steps.knobs();
}

absl::StatusOr<Emission> Print(const GroupView& view, const EmitTarget& target,
                               const std::vector<std::string>& tuned) {
  Emission emission;
  MTMC_ASSIGN_OR_RETURN(EmittedStep step,
                        PointwisePrinter(view, target, Table().Read(view), tuned).Print());
  emission.steps.push_back(std::move(step));
  return emission;
}

}  // namespace

const KernelTemplate kPointwiseTemplate = {
    .name = "pointwise",
    .keeps_knobs = true,
    .accepts = Accepts,
    .knobs = []() -> const KnobTable& { return Table(); },
    .starting_knobs = StartingKnobs,
    .cost = CostOfSweeps,
    .print = Print,
};

}  // namespace mtmc::kernel
