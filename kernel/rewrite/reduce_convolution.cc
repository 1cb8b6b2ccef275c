// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "kernel/rewrite/convolution_node.h"
#include "kernel/rewrite/divide.h"
#include "kernel/rewrite/reduce_first.h"

namespace mtmc::kernel {
namespace {

// Each is a sum of its own: more would take longer than they save.
constexpr int64_t kMaxRuns = 16;

// Multiplications and additions on tensor cores in the time of a byte of memory, of recent GPUs.
constexpr double kOperationsPerByte = 80;

// Elements `first`, `first + step`, ... of an axis, `count` of them.
struct Run {
  int64_t first = 0;
  int64_t count = 0;
  int64_t step = 1;
};

// The elements of [low, high] that an axis of `extent` has.
Run Between(int64_t low, int64_t high, int64_t extent) {
  low = std::max<int64_t>(low, 0);
  high = std::min(high, extent - 1);
  return {.first = low, .count = high - low + 1};
}

// Multiplications of a convolution with a kernel [O, C, ...], or [C, O, ...] for a transposed
// one, at the positions of its result, or of its input.
double ProductsOf(const TensorType& positions, const std::vector<int64_t>& kernel) {
  double products = static_cast<double>(positions.elements());
  for (size_t d = 1; d < kernel.size(); ++d) products *= static_cast<double>(kernel.at(d));
  return products;
}

// Writes the convolution whose result is the pooled one, axis by axis. Input and weight are
// changed on the way; the weight is [O, C, ...] also where it began as that of a transposed one.
class PooledConvolution {
 public:
  PooledConvolution(EditBuilder& builder, const ConvolutionNode& from, const Pooling& pooling)
      : builder_(builder),
        from_(from),
        pooling_(pooling),
        input_(from.input),
        weight_(from.weight),
        folded_(from.dims(), false),
        input_pooling_(NoPooling()),
        weight_pooling_(NoPooling()) {
    geometry_.groups = from.groups;
  }

  // The pooled result; absent where an axis has no form here.
  std::optional<std::string> Write(const std::string& bias) {
    if (from_.is_transposed) SwapChannels();
    pools_weight_ = !from_.is_transposed && IsWeightCheaper();
    for (size_t d = 0; d < from_.dims(); ++d) {
      const bool has_form = from_.is_transposed ? AddTransposedAxis(d) : AddAxis(d);
      if (!has_form) return std::nullopt;
    }
    input_ = PoolAll(input_, input_pooling_);
    weight_ = PoolAll(weight_, weight_pooling_);
    return Finish(bias);
  }

  // Multiplications of what was written.
  double products() const { return products_; }

 private:
  Pooling NoPooling() const {
    return Pooling::Plain(std::vector<int64_t>(from_.dims() + 2, 1), pooling_.is_mean);
  }

  int AxisOf(size_t d) const { return static_cast<int>(d) + 2; }

  const Pooling::Axis& PoolingOf(size_t d) const { return pooling_.axes.at(d + 2); }

  int64_t InputExtent(size_t d) const { return builder_.TypeOf(input_).shape.at(d + 2); }

  int64_t Taps(size_t d) const { return builder_.TypeOf(from_.weight).shape.at(d + 2); }

  // At most one more than there may be.
  int64_t FewTaps(size_t d) const { return std::min(Taps(d), kMaxRuns + 1); }

  // A weight [C, O, ...] as [O, C, ...].
  void SwapChannels() {
    std::vector<int> order = {1, 0};
    for (size_t d = 0; d < from_.dims(); ++d) order.push_back(AxisOf(d));
    weight_ = builder_.Permute(weight_, order);
  }

  void AddGeometry(int64_t stride, int64_t padding, int64_t dilation) {
    geometry_.stride.push_back(stride);
    geometry_.padding.push_back(padding);
    geometry_.dilation.push_back(dilation);
  }

  // An axis on which the input has one element a tap, all of which one result takes.
  void AddFolded(size_t d) {
    folded_.at(d) = true;
    AddGeometry(1, 0, 1);
  }

  // Sums of runs along an axis, one after the other; means of `window` elements. False for a
  // run of nothing, and for too many.
  bool SumRuns(std::string& value, int axis, const std::vector<Run>& runs, int64_t window) {
    if (std::ssize(runs) > kMaxRuns) return false;
    std::map<std::tuple<int64_t, int64_t, int64_t>, std::string> sums;
    std::vector<std::string> parts;
    for (const Run& run : runs) {
      if (run.count < 1) return false;
      std::string& sum = sums[{run.first, run.count, run.step}];
      if (sum.empty()) {
        sum = builder_.Slice(value, axis, run.first, run.count, run.step);
        if (run.count > 1) sum = builder_.Sum(sum, {axis});
      }
      parts.push_back(sum);
    }
    value = builder_.Concatenate(parts, axis);
    if (pooling_.is_mean) value = builder_.Scale(value, 1 / static_cast<double>(window));
    return true;
  }

  // With as many results as there are windows on each axis.
  std::string PoolAll(const std::string& value, Pooling pooling) {
    const std::vector<int64_t> shape = builder_.TypeOf(value).shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      Pooling::Axis& axis = pooling.axes.at(d);
      axis.outputs = (shape.at(d) - axis.window) / axis.step + 1;
    }
    return Pool(builder_, value, pooling);
  }

  // out[o] = sum of x[o * stride - padding + r * dilation] w[r] over taps r.
  bool AddAxis(size_t d) {
    const Pooling::Axis& windows = PoolingOf(d);
    const int64_t stride = from_.stride.at(d);
    const int64_t dilation = from_.dilation.at(d);
    if (windows.is_plain()) {
      AddGeometry(stride, from_.padding.at(d), dilation);
      return true;
    }
    // Windows of elements that lie apart are no pooling.
    if (HasWindows(d) && stride != 1) return false;
    if (HasWindows(d) && pools_weight_) {
      PoolTaps(d);
      return true;
    }
    input_ = builder_.Pad(input_, AxisOf(d), from_.padding.at(d), from_.padding.at(d));
    if (windows.outputs == 1) {
      std::vector<Run> runs;
      for (int64_t r = 0; r < FewTaps(d); ++r) {
        runs.push_back({r * dilation, windows.window, stride});
      }
      AddFolded(d);
      return SumRuns(input_, AxisOf(d), runs, windows.window);
    }
    if (Taps(d) == 1) {
      const int64_t count = (windows.outputs - 1) * windows.step + windows.window;
      input_ = builder_.Slice(input_, AxisOf(d), 0, count, stride);
      input_pooling_.axes.at(d + 2) = windows;
      AddGeometry(1, 0, 1);
      return true;
    }
    input_pooling_.axes.at(d + 2) = {.window = windows.window};
    AddGeometry(windows.step, 0, dilation);
    return true;
  }

  // Tap `u` of convolution and pooling in one sums the taps that meet the same element of the
  // input: r = u - j for j in the window.
  void PoolTaps(size_t d) {
    const Pooling::Axis& windows = PoolingOf(d);
    weight_ = builder_.Pad(weight_, AxisOf(d), windows.window - 1, windows.window - 1);
    weight_pooling_.axes.at(d + 2) = {.window = windows.window};
    AddGeometry(windows.step, from_.padding.at(d), 1);
  }

  // Whether the axis is pooled in windows, which some taps of neighbouring positions share.
  bool HasWindows(size_t d) const {
    return PoolingOf(d).outputs > 1 && !PoolingOf(d).is_plain() && Taps(d) > 1;
  }

  // Whether all windows can be pooled in the weight, and the multiplications that its taps add
  // take less time than to write and read the pooled input.
  bool IsWeightCheaper() const {
    double taps = 1;
    double pooled_taps = 1;
    double results = static_cast<double>(pooling_.axes.at(0).outputs);
    for (size_t d = 0; d < from_.dims(); ++d) {
      if (HasWindows(d) && from_.dilation.at(d) != 1) return false;
      const int64_t more = HasWindows(d) ? PoolingOf(d).window - 1 : 0;
      taps *= static_cast<double>(Taps(d));
      pooled_taps *= static_cast<double>(Taps(d) + more);
      results *= static_cast<double>(PoolingOf(d).outputs);
    }
    const std::vector<int64_t>& weight = builder_.TypeOf(from_.weight).shape;
    const double operations =
        2 * results * static_cast<double>(weight.at(0) * weight.at(1)) * (pooled_taps - taps);
    const double bytes = 2 * static_cast<double>(builder_.TypeOf(from_.input).bytes());
    return operations < kOperationsPerByte * bytes;
  }

  // out[y] = sum of x[h] w[r] over h * stride - padding + r * dilation = y.
  bool AddTransposedAxis(size_t d) {
    const Pooling::Axis& windows = PoolingOf(d);
    const int64_t stride = from_.stride.at(d);
    const int64_t padding = from_.padding.at(d);
    const int64_t dilation = from_.dilation.at(d);
    const int64_t taps = Taps(d);
    const int64_t extent = InputExtent(d);
    const int64_t window = windows.window;
    if (windows.is_plain()) {
      // A convolution with the taps turned around.
      const int64_t before = dilation * (taps - 1) - padding;
      if (stride != 1 || before < 0 || from_.output_padding.at(d) != 0) return false;
      weight_ = builder_.Flip(weight_, {AxisOf(d)});
      AddGeometry(1, before, dilation);
      return true;
    }
    if (windows.outputs == 1) {
      std::vector<Run> runs;
      for (int64_t r = 0; r < FewTaps(d); ++r) {
        const int64_t first = padding - r * dilation;
        runs.push_back(
            Between(CeilDivide(first, stride), FloorDivide(first + window - 1, stride), extent));
      }
      AddFolded(d);
      return SumRuns(input_, AxisOf(d), runs, window);
    }
    // The window moves by whole elements of the input: tap `e` of convolution and pooling in one,
    // for the input's element `o * step + e`, sums the taps that fall into the window, r =
    // padding - e * stride + j; turned around they are a pooling.
    if (windows.step % stride != 0 || dilation != 1) return false;
    const int64_t step = windows.step / stride;
    const int64_t first = CeilDivide(padding - (taps - 1), stride);
    const int64_t last = FloorDivide(window - 1 + padding, stride);
    const int64_t begin = taps - padding - window + first * stride;
    const int64_t end = begin + (last - first) * stride + window;
    weight_ = builder_.Pad(builder_.Flip(weight_, {AxisOf(d)}), AxisOf(d), -begin, end - taps);
    weight_pooling_.axes.at(d + 2) = {.window = window, .step = stride};
    const int64_t needed = (windows.outputs - 1) * step + last + 1;
    input_ = builder_.Pad(input_, AxisOf(d), -first, needed - extent);
    AddGeometry(step, 0, 1);
    return true;
  }

  // Leading axes that one result takes whole are channels; without any other the convolution is
  // a matrix product.
  std::string Finish(const std::string& bias) {
    std::vector<int64_t> result = builder_.TypeOf(input_).shape;
    result.at(1) = builder_.TypeOf(weight_).shape.at(0);
    for (size_t d = 0; d < from_.dims(); ++d) result.at(d + 2) = PoolingOf(d).outputs;
    const TensorType& weight = builder_.TypeOf(weight_);
    products_ = ProductsOf({.shape = result}, weight.shape);
    size_t leading = 0;
    while (leading < from_.dims() && folded_.at(leading)) ++leading;
    if (leading == from_.dims() && from_.groups == 1) {
      const auto flat = [this](const std::string& value) {
        const TensorType& type = builder_.TypeOf(value);
        const int64_t rows = type.shape.at(0);
        return builder_.Reshape(value, {rows, type.elements() / std::max<int64_t>(rows, 1)});
      };
      const std::string input = flat(input_);
      return builder_.Reshape(builder_.Linear(input, flat(weight_), bias), result);
    }
    leading = std::min(leading, from_.dims() - 1);
    const auto fold = [this, leading](const std::string& value) {
      std::vector<int64_t> shape = builder_.TypeOf(value).shape;
      for (size_t d = 0; d < leading; ++d) shape.at(1) *= shape.at(d + 2);
      shape.erase(shape.begin() + 2, shape.begin() + 2 + static_cast<std::ptrdiff_t>(leading));
      return builder_.Reshape(value, shape);
    };
    for (std::vector<int64_t>* values :
         {&geometry_.stride, &geometry_.padding, &geometry_.dilation}) {
      values->erase(values->begin(), values->begin() + static_cast<std::ptrdiff_t>(leading));
    }
    const std::string input = fold(input_);
    return builder_.Reshape(builder_.Convolution(input, fold(weight_), bias, geometry_), result);
  }

  EditBuilder& builder_;
  const ConvolutionNode& from_;
  const Pooling& pooling_;
  std::string input_;
  std::string weight_;
  EditBuilder::Geometry geometry_;
  std::vector<bool> folded_;
  // Of windows, which all axes take at once in the end.
  Pooling input_pooling_;
  Pooling weight_pooling_;
  bool pools_weight_ = false;
  double products_ = 0;
};

}  // namespace

// Positions are pooled in the input or in the weight's taps, channels in weight and bias.
std::optional<std::string> PoolingMover::PastConvolution(const GraphNode& node,
                                                         const Pooling& pooling) {
  std::optional<ConvolutionNode> found = FindConvolution(uses_, node);
  if (!found || !pooling.axes.at(0).is_plain()) return std::nullopt;
  // Channels of groups would have to change places with outputs of groups.
  if (found->is_transposed && found->groups != 1) return std::nullopt;
  const Pooling::Axis& channels = pooling.axes.at(1);
  if (!channels.is_plain() && found->groups != 1) return std::nullopt;
  const std::vector<int64_t> kernel = uses_.TypeOf(found->weight).shape;
  const double before = ProductsOf(
      found->is_transposed ? uses_.TypeOf(found->input) : node.result_types.at(0), kernel);
  builder_.SetOrigin(node);
  const auto pool_channels = [&](const std::string& value, size_t axis) {
    Pooling own = Pooling::Plain(uses_.TypeOf(value).shape, pooling.is_mean);
    own.axes.at(axis) = channels;
    return std::pair(Move(value, own), pooling.gain() / own.gain());
  };
  if (!channels.is_plain()) {
    found->weight = pool_channels(found->weight, found->is_transposed ? 1 : 0).first;
  }
  std::string bias;
  if (!found->bias.empty()) {
    const auto [pooled, gain] = pool_channels(found->bias, 0);
    bias = builder_.Scale(pooled, gain);
  }
  PooledConvolution pooled(builder_, *found, pooling);
  std::optional<std::string> result = pooled.Write(bias);
  if (!result) return std::nullopt;
  products_.before += before;
  products_.after += pooled.products();
  return result;
}

}  // namespace mtmc::kernel
