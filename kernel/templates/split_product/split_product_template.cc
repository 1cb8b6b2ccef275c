// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/split_product/split_product_template.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "kernel/graph/operators.h"
#include "kernel/graph/text.h"
#include "kernel/templates/contraction/contraction_template.h"
#include "kernel/view/contraction_space.h"
#include "kernel/writer/kernel_writer.h"

namespace mtmc::kernel {
namespace {

constexpr int64_t kBlock = 256;
// Terms of the product: tail and head, head and tail, head and head.
constexpr int64_t kTerms = 3;
// Bytes that an element of a factor (read, written in three terms, read by the call) and one of
// a partial sum (written, read) take.
constexpr double kBytesOfFactor = 4 + 12 + 12;
constexpr double kBytesOfPart = 4 + 4;
// Multiply-adds that must be saved for each byte that is moved besides: TF32 does about seven in
// the time of one in FP32, and the memory of such a device moves a byte in the time of some ten.
constexpr double kWorthwhileIntensity = 32;
// Lines of an operand and of the sums begin at multiples of 16 bytes: libraries have their fast
// kernels for those.
constexpr int64_t kAlignment = 4;

// Tensor cores round each addition towards zero, so that errors of long sums have one sign, and
// what averages over rows keeps them. So many elements are as exact as sums in FP32.
constexpr int64_t kShortSum = 256;

struct SplitProductKnobs {
  // Elements of a partial sum, at most; the sums are about equally long.
  int64_t sum = 1024;
};

using SplitProductTable = TypedKnobTable<SplitProductKnobs>;

const SplitProductTable& Table() {
  static const auto* const table = new SplitProductTable(
      {.rows = {{{"sum", "split", {.least = 128, .most = 65536, .is_power_of_two = true}},
                 &SplitProductKnobs::sum}},
       .defaults = [](const GroupView&, const EmitTarget&) { return SplitProductKnobs(); },
       .legality = [](const GroupView&,
                      const EmitTarget&) -> std::function<absl::Status(const SplitProductKnobs&)> {
         return [](const SplitProductKnobs&) { return absl::OkStatus(); };
       },
       .steps =
           [](const SplitProductKnobs&, const GroupView& view, const EmitTarget&) {
             std::vector<SplitProductTable::Step> steps;
             for (const int64_t sum : {4096, 512}) {
               if (sum >= 2 * SpaceOf(*FindContraction(view)).k) continue;
               steps.push_back({Concat("into sums of ", sum), {.sum = sum}});
             }
             return steps;
           }});
  return *table;
}

bool IsF32(const GroupView& view, const ScalarPtr& factor, const Loop& loop) {
  const std::vector<ElementRead> reads =
      ElementReads(view, InlineMaps(view, factor, loop.extents), loop.extents);
  return factor->type == DataType::kF32 && !reads.empty();
}

bool Accepts(const GroupView& view, const EmitTarget& target) {
  if (!kContractionTemplate.accepts(view, target)) return false;
  const Loop& loop = *FindContraction(view);
  return loop.types[0].data_type == DataType::kF32 && SpaceOf(loop).k > 0 &&
         IsF32(view, loop.lhs, loop) && IsF32(view, loop.rhs, loop);
}

// How one factor lies in its buffer: [batch * parts][width][terms * part], or the last two turned
// around where neighbours along the rows are neighbours in memory. Rows behind the last are zero.
struct Factor {
  ScalarPtr element;
  bool is_left = true;
  int64_t rows = 1;
  int64_t width = 1;
  bool is_sum_inner = true;
  std::string buffer;
};

// Prints the steps of one group. Lives for one call.
class SplitProductPrinter {
 public:
  SplitProductPrinter(const GroupView& view, const EmitTarget& target)
      : view_(view),
        target_(target),
        loop_(*FindContraction(view)),
        space_(SpaceOf(loop_)),
        parts_(CountParts(space_.k, Table().Read(view).sum)),
        part_(RoundUp(RoundUp(space_.k, parts_) / parts_, kAlignment)),
        left_(MakeFactor(loop_.lhs, /*is_left=*/true)),
        right_(MakeFactor(loop_.rhs, /*is_left=*/false)),
        sums_(Concat(view.group->name, "_sums")) {}

  absl::StatusOr<Emission> Print() {
    Emission emission;
    for (const Factor* factor : {&left_, &right_}) {
      emission.buffers.push_back({.name = factor->buffer, .type = TypeOfFactor(*factor)});
      MTMC_ASSIGN_OR_RETURN(EmittedStep step, PrintFactor(*factor));
      emission.steps.push_back(std::move(step));
    }
    emission.buffers.push_back({.name = sums_, .type = TypeOfSums()});
    emission.steps.push_back({.step = Call()});
    MTMC_ASSIGN_OR_RETURN(EmittedStep step, PrintSums());
    emission.steps.push_back(std::move(step));
    return emission;
  }

 private:
  static int64_t CountParts(int64_t k, int64_t most) { return (k + most - 1) / most; }

  static int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

  int64_t batch() const { return space_.batch * parts_; }

  Factor MakeFactor(const ScalarPtr& element, bool is_left) const {
    Factor factor{.element = element,
                  .is_left = is_left,
                  .rows = is_left ? space_.m : space_.n,
                  .width = RoundUp(is_left ? space_.m : space_.n, kAlignment),
                  .buffer = Concat(view_.group->name, is_left ? "_left" : "_right")};
    const std::vector<int>& rows = is_left ? space_.m_axes : space_.n_axes;
    if (!rows.empty() && IsNeighbour(element, rows.back())) {
      factor.is_sum_inner = IsNeighbour(element, space_.k_axes.back());
    }
    return factor;
  }

  // Whether the elements along one axis of the loop lie side by side.
  bool IsNeighbour(const ScalarPtr& element, int axis) const {
    const std::vector<ElementRead> reads =
        ElementReads(view_, InlineMaps(view_, element, loop_.extents), loop_.extents);
    return std::any_of(reads.begin(), reads.end(), [&](const ElementRead& read) {
      const auto along = StrideAlong(read.offset, axis, loop_.extents);
      return along && along->stride == 1;
    });
  }

  TensorType TypeOfFactor(const Factor& factor) const {
    const int64_t wide = kTerms * part_;
    return {.data_type = DataType::kF32,
            .shape = factor.is_sum_inner ? std::vector<int64_t>{batch(), factor.width, wide}
                                         : std::vector<int64_t>{batch(), wide, factor.width}};
  }

  TensorType TypeOfSums() const {
    return {.data_type = DataType::kF32, .shape = {batch(), left_.width, right_.width}};
  }

  // A thread per element, in row-major order.
  ScalarPtr OpenThread(KernelWriter& writer, int64_t elements) const {
    ScalarPtr i = writer.DeclareThread(elements, std::to_string(kBlock));
    writer.Open(Concat("if (i < ", writer.text().IntegerLiteral(elements, DataType::kI64), ")"));
    return i;
  }

  absl::StatusOr<EmittedStep> Finish(KernelWriter& writer, int64_t elements) const {
    writer.Close();
    return writer.Finish({.grid = {Concat("ceil_div(", elements, ", ", kBlock, ")")},
                          .block = {std::to_string(kBlock)}});
  }

  // Writes a factor as its terms, with zeros behind its last row and element of the sum.
  absl::StatusOr<EmittedStep> PrintFactor(const Factor& factor) const {
    KernelWriter writer(view_, target_, {}, factor.buffer);
    writer.Reserve({"i", "x", "head", "tail"});
    for (const std::string& tensor : ReadsOf(factor.element, loop_.extents)) {
      writer.AddParameter(tensor, false);
    }
    writer.AddParameter(factor.buffer, TypeOfFactor(factor), true);
    // One thread for the three terms of an element.
    TensorType threads = TypeOfFactor(factor);
    threads.shape[factor.is_sum_inner ? 2 : 1] = part_;
    const ScalarPtr i = OpenThread(writer, threads.elements());
    std::vector<ScalarPtr> at = IndicesOf(threads, i, writer.extents());
    ScalarPtr& along = at[factor.is_sum_inner ? 2 : 1];
    const ScalarPtr row = at[factor.is_sum_inner ? 1 : 2];
    const ScalarPtr k = Add(Mul(Mod(at[0], parts_), kernel::Index(part_)), along);
    const std::vector<ScalarPtr> axes =
        AxesOf(space_, FloorDiv(at[0], parts_), factor.is_left ? row : kernel::Index(0),
               factor.is_left ? kernel::Index(0) : row, k, writer.extents());
    writer.Line("float x = 0.0f;");
    std::vector<std::string> conditions;
    if (parts_ * part_ > space_.k) conditions.push_back(Concat(writer.Index(k), " < ", space_.k));
    if (factor.width > factor.rows) {
      conditions.push_back(Concat(writer.Index(row), " < ", factor.rows));
    }
    writer.Open(conditions.empty() ? "" : Concat("if (", kernel::Join(conditions, " && "), ")"));
    const std::string element = writer.Body(factor.element, axes);
    writer.Line(Concat("x = ", element, ";"));
    writer.Close();
    writer.Line("const float head = tf32_head(x);");
    writer.Line("const float tail = tf32_tail(x, head);");
    const std::array<std::string_view, kTerms> terms =
        factor.is_left ? std::array<std::string_view, kTerms>{"tail", "head", "head"}
                       : std::array<std::string_view, kTerms>{"head", "tail", "head"};
    const ScalarPtr first = along;
    for (int64_t term = 0; term < kTerms; ++term) {
      along = Add(first, kernel::Index(term * part_));
      writer.Store(factor.buffer, at, terms[static_cast<size_t>(term)]);
    }
    return Finish(writer, threads.elements());
  }

  // The tensors in memory that an expression needs, each once.
  std::vector<std::string> ReadsOf(const ScalarPtr& element,
                                   const std::vector<int64_t>& extents) const {
    std::vector<std::string> tensors;
    for (const ElementRead& read :
         ElementReads(view_, InlineMaps(view_, element, extents), extents)) {
      const bool is_known = read.tensor == loop_.results[0] ||
                            std::find(tensors.begin(), tensors.end(), read.tensor) != tensors.end();
      if (!is_known) tensors.push_back(read.tensor);
    }
    return tensors;
  }

  LibraryCall Call() const {
    return {.op = "aten::bmm",
            .arguments = {Operand(left_), Operand(right_)},
            .results = {sums_},
            .precision = LibraryCall::Precision::kTf32};
  }

  // The left factor as [batch, m, terms], the right one as [batch, terms, n].
  CallArgument Operand(const Factor& factor) const {
    CallArgument::TensorName tensor{.name = factor.buffer};
    const TensorType type = TypeOfFactor(factor);
    if (factor.is_left != factor.is_sum_inner) {
      const int64_t inner = type.shape[2];
      tensor.view = StridedView{.shape = {type.shape[0], inner, type.shape[1]},
                                .strides = {type.shape[1] * inner, 1, inner}};
    }
    return {.keyword = "", .value = std::move(tensor)};
  }

  // Adds the partial sums of an element, and computes what follows.
  absl::StatusOr<EmittedStep> PrintSums() const {
    KernelWriter writer(view_, target_, {}, view_.group->name);
    writer.Reserve({"i"});
    writer.AddParameter(sums_, TypeOfSums(), false);
    std::set<std::string> reads;
    for (const std::string& output : view_.outputs) {
      const TensorType& type = TypeOf(view_, output);
      const ScalarPtr element =
          Read(output, Axes(static_cast<int>(type.shape.size())), type.data_type);
      for (std::string& tensor : ReadsOf(element, type.shape)) reads.insert(std::move(tensor));
    }
    for (const std::string& tensor : reads) writer.AddParameter(tensor, false);
    for (const std::string& tensor : view_.outputs) writer.AddParameter(tensor, true);
    const TensorType& type = loop_.types[0];
    const ScalarPtr i = OpenThread(writer, type.elements());
    const std::vector<ScalarPtr> axes = IndicesOf(type, i, writer.extents());
    const std::string sum = writer.Fresh("sum");
    writer.Line(Concat("float ", sum, " = 0.0f;"));
    const ScalarPtr batch = Mul(Flat(space_.batch_axes, axes), kernel::Index(parts_));
    const std::string name = writer.Fresh("part");
    const ScalarPtr part = parts_ > 1 ? writer.Axis(name, parts_) : kernel::Index(0);
    if (parts_ > 1) {
      writer.Open(Concat("for (int ", name, " = 0; ", name, " < ", parts_, "; ++", name, ")"));
    }
    const std::string one =
        writer.Value(sums_, std::vector<ScalarPtr>{Add(batch, part), Flat(space_.m_axes, axes),
                                                   Flat(space_.n_axes, axes)});
    writer.Line(Concat(sum, " += ", one, ";"));
    if (parts_ > 1) writer.Close();
    writer.Bind(loop_.results[0], axes, sum);
    for (const std::string& value : view_.outputs) {
      const std::vector<ScalarPtr> indices = IndicesOf(TypeOf(view_, value), i, writer.extents());
      const std::string element = writer.Value(value, indices);
      writer.Store(value, indices, element);
    }
    return Finish(writer, type.elements());
  }

  // The flat index of a role's axes.
  ScalarPtr Flat(const std::vector<int>& role, const std::vector<ScalarPtr>& axes) const {
    ScalarPtr flat = kernel::Index(0);
    for (const int axis : role) {
      const auto at = static_cast<size_t>(axis);
      flat = Add(Mul(flat, kernel::Index(loop_.extents[at])), axes[at]);
    }
    return flat;
  }

  const GroupView& view_;
  const EmitTarget& target_;
  const Loop& loop_;
  const ContractionSpace space_;
  // Partial sums of an element, and elements of each.
  const int64_t parts_;
  const int64_t part_;
  const Factor left_;
  const Factor right_;
  const std::string sums_;
};

// Traffic of the buffers beside that of the group.
double BytesOfBuffers(const ContractionSpace& space, int64_t sum) {
  const auto batch = static_cast<double>(space.batch);
  const auto m = static_cast<double>(space.m);
  const auto n = static_cast<double>(space.n);
  const auto k = static_cast<double>(space.k);
  const double parts = std::ceil(k / static_cast<double>(sum));
  return batch * (kBytesOfFactor * (m + n) * k + kBytesOfPart * parts * m * n);
}

GroupCost CostOfGroup(const GroupView& view) {
  const ContractionSpace space = SpaceOf(*FindContraction(view));
  GroupCost cost = CostOfSweeps(view);
  cost.operations += OperationsOf(view, space, 1, 1);
  cost.bytes += BytesOfBuffers(space, SplitProductKnobs().sum);
  return cost;
}

// Whether the vendor's call computes it in TF32 by PyTorch's defaults: nothing is saved then.
bool IsOfConvolution(const GroupView& view, const Loop& loop) {
  return std::any_of(view.graph->nodes.begin(), view.graph->nodes.end(), [&](const auto& node) {
    return node.name == loop.node && IsConvolution(node.op);
  });
}

bool IsPromising(const GroupView& view, const EmitTarget& target) {
  const Loop& loop = *FindContraction(view);
  if (target.dialect != Dialect::kCuda || IsOfConvolution(view, loop)) return false;
  const ContractionSpace space = SpaceOf(loop);
  return space.flops() > kWorthwhileIntensity * BytesOfBuffers(space, SplitProductKnobs().sum);
}

Knobs ExactKnobs(const GroupView& view, const EmitTarget& target) {
  if (SpaceOf(*FindContraction(view)).k <= kShortSum) return {};
  Knobs knobs = Table().Defaults(view, target);
  knobs["sum"] = kShortSum;
  return knobs;
}

}  // namespace

const KernelTemplate kSplitProductTemplate = {
    .name = "split_product",
    .tier = "tf32x3",
    .accepts = Accepts,
    .knobs = []() -> const KnobTable& { return Table(); },
    .starting_knobs = [](const GroupView& view,
                         const EmitTarget& target) { return Table().Defaults(view, target); },
    .cost = CostOfGroup,
    .print = [](const GroupView& view, const EmitTarget& target, const std::vector<std::string>&)
        -> absl::StatusOr<Emission> { return SplitProductPrinter(view, target).Print(); },
    .is_promising = IsPromising,
    .exact_knobs = ExactKnobs,
};

}  // namespace mtmc::kernel
