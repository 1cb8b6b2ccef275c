// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernel/rewrite/convolution_node.h"
#include "kernel/rewrite/divide.h"
#include "kernel/rewrite/edit_builder.h"
#include "kernel/rewrite/rules.h"

namespace mtmc::kernel {
namespace {

// With stride 1 both forms multiply as much, and what vendors have for the transposed one is slow
// over three axes alone: 6 to 38 TFLOP/s on an H200, where two axes have 60 to 200.
constexpr size_t kLeastPlainDims = 3;
// Remainders that have fewer taps than others get some of zero, so that a plain form multiplies
// more: of 3 taps by stride 2, 4 for 3 along each axis. As much as vendors' own lose is worth a
// trial.
constexpr double kMostWork = 4;

int AxisOf(size_t d) { return static_cast<int>(d) + 2; }

// One axis. With stride s and dilation d, g being their greatest common divisor, tap
// k = j s / g + q brings the input at i to s (i + j d / g) + d q of the output: each q below s / g
// is a channel of its own, of a convolution of stride 1 and dilation d / g by every (s / g)-th
// tap, and its outputs lie at d q, s + d q, 2 s + d q, ... if d q is less than s.
struct Axis {
  int64_t stride = 1;
  int64_t dilation = 1;
  // Extents of the input, the weight and the result.
  int64_t input = 1;
  int64_t kernel = 1;
  int64_t result = 1;
  int64_t padding = 0;
  int64_t output_padding = 0;

  // Channels; those that would have no tap are left out.
  int64_t channels() const { return std::min(stride / Divisor(), kernel); }

  int64_t taps() const { return CeilDivide(kernel, channels()); }

  int64_t plain_dilation() const { return dilation / Divisor(); }

  // Outputs of one channel.
  int64_t places() const { return input + plain_dilation() * (taps() - 1); }

  // Stride 1 has one channel, which padding cuts at both ends.
  bool HasForm() const {
    if (stride > 1) return dilation * (channels() - 1) < stride;
    return output_padding == 0 && padding <= (taps() - 1) * dilation;
  }

 private:
  int64_t Divisor() const { return std::gcd(stride, dilation); }
};

// Writes a transposed convolution as a plain one, whose channels become places. For stride 1 it
// is the plain one alone.
class PlainConvolution {
 public:
  // `from` is transposed and gives `extents`.
  PlainConvolution(EditBuilder& builder, const ConvolutionNode& from,
                   const std::vector<int64_t>& extents)
      : builder_(builder), from_(from), weight_(builder.TypeOf(from.weight).shape) {
    const std::vector<int64_t>& input = builder.TypeOf(from.input).shape;
    for (size_t d = 0; d < from.dims(); ++d) {
      axes_.push_back({.stride = from.stride.at(d),
                       .dilation = from.dilation.at(d),
                       .input = input.at(d + 2),
                       .kernel = weight_.at(d + 2),
                       .result = extents.at(d + 2),
                       .padding = from.padding.at(d),
                       .output_padding = from.output_padding.at(d)});
      channels_ *= axes_.back().channels();
    }
  }

  bool HasForm() const {
    return std::all_of(axes_.begin(), axes_.end(), [](const Axis& axis) { return axis.HasForm(); });
  }

  // How many times more it multiplies.
  double work() const {
    double work = 1;
    for (const Axis& axis : axes_) {
      if (axis.stride == 1) continue;
      const int64_t plain = axis.places() * axis.channels() * axis.taps();
      work *= static_cast<double>(plain) / static_cast<double>(axis.input * axis.kernel);
    }
    return work;
  }

  // The result. REQUIRES: HasForm().
  std::string Write() {
    EditBuilder::Geometry geometry{.groups = from_.groups};
    for (const Axis& axis : axes_) {
      geometry.stride.push_back(1);
      geometry.dilation.push_back(axis.plain_dilation());
      // Places beside the channels are cut off later.
      const int64_t cut = axis.stride == 1 ? axis.padding : 0;
      geometry.padding.push_back((axis.taps() - 1) * axis.plain_dilation() - cut);
    }
    const bool is_whole =
        std::all_of(axes_.begin(), axes_.end(), [](const Axis& axis) { return axis.stride == 1; });
    std::string result =
        builder_.Convolution(from_.input, TurnedWeight(), is_whole ? from_.bias : "", geometry);
    if (is_whole) return result;
    result = Placed(std::move(result));
    for (size_t d = 0; d < axes_.size(); ++d) {
      const int64_t start = axes_[d].stride == 1 ? 0 : axes_[d].padding;
      result = builder_.Slice(result, AxisOf(d), start, axes_[d].result);
    }
    if (from_.bias.empty()) return result;
    std::vector<int64_t> shape(from_.dims() + 1, 1);
    shape.at(0) = outputs();
    return builder_.Plus(result, builder_.Reshape(from_.bias, shape));
  }

 private:
  int64_t outputs() const { return weight_.at(1) * from_.groups; }

  // [C, O / groups, taps...] as [O channels, C / groups, taps of one channel, turned...].
  std::string TurnedWeight() {
    std::string weight = from_.weight;
    std::vector<int64_t> split = {from_.groups, weight_.at(0) / from_.groups, weight_.at(1)};
    std::vector<int> order = {0, 2};
    std::vector<int> turned;
    std::vector<int64_t> shape = {outputs() * channels_, split.at(1)};
    for (size_t d = 0; d < axes_.size(); ++d) {
      const Axis& axis = axes_[d];
      weight = builder_.Pad(weight, AxisOf(d), 0, axis.taps() * axis.channels() - axis.kernel);
      turned.push_back(static_cast<int>(split.size()));
      split.insert(split.end(), {axis.taps(), axis.channels()});
      order.push_back(turned.back() + 1);
      shape.push_back(axis.taps());
    }
    order.push_back(1);
    order.insert(order.end(), turned.begin(), turned.end());
    weight = builder_.Flip(builder_.Reshape(weight, split), turned);
    return builder_.Reshape(builder_.Permute(weight, order), shape);
  }

  // [N, O channels, places...] as [N, O, extents...], which are at least what the result needs.
  std::string Placed(std::string value) {
    std::vector<int64_t> split = {builder_.TypeOf(value).shape.at(0), outputs()};
    for (const Axis& axis : axes_) split.push_back(axis.channels());
    std::vector<int64_t> shape = {split.at(0), split.at(1)};
    std::vector<int> order = {0, 1};
    const int dims = static_cast<int>(axes_.size());
    for (int d = 0; d < dims; ++d) {
      const Axis& axis = axes_[static_cast<size_t>(d)];
      // Places that no tap meets, which output padding adds, have zeros.
      const int64_t least =
          axis.stride == 1 ? 0 : CeilDivide(axis.padding + axis.result, axis.stride);
      value = builder_.Pad(value, 2 + d, 0, std::max<int64_t>(least - axis.places(), 0));
      split.push_back(builder_.TypeOf(value).shape.at(static_cast<size_t>(d) + 2));
      shape.push_back(split.back() * axis.stride);
      order.insert(order.end(), {2 + dims + d, 2 + d});
    }
    value = builder_.Permute(builder_.Reshape(value, split), order);
    for (int d = 0; d < dims; ++d) {
      value = Spread(std::move(value), 3 + 2 * d, axes_[static_cast<size_t>(d)]);
    }
    return builder_.Reshape(value, shape);
  }

  // The channels of `axis` as the outputs between two strides.
  std::string Spread(std::string value, int at, const Axis& axis) {
    if (axis.channels() > 1 && axis.dilation > 1) {
      std::vector<int64_t> shape = builder_.TypeOf(value).shape;
      std::vector<int64_t> apart = shape;
      apart.insert(apart.begin() + at + 1, 1);
      shape.at(static_cast<size_t>(at)) *= axis.dilation;
      value = builder_.Pad(builder_.Reshape(value, apart), at + 1, 0, axis.dilation - 1);
      value = builder_.Reshape(value, shape);
    }
    const int64_t extent = builder_.TypeOf(value).shape.at(static_cast<size_t>(at));
    return builder_.Pad(value, at, 0, axis.stride - extent);
  }

  EditBuilder& builder_;
  const ConvolutionNode& from_;
  const std::vector<int64_t> weight_;
  std::vector<Axis> axes_;
  // Along all axes.
  int64_t channels_ = 1;
};

}  // namespace

std::optional<GraphEdit> FindPlainConvolution(const GraphUses& uses, const GraphNode& node) {
  const std::optional<ConvolutionNode> found = FindConvolution(uses, node);
  if (!found || !found->is_transposed || !uses.IsRead(node.results.at(0))) return std::nullopt;
  const bool is_apart = std::any_of(found->stride.begin(), found->stride.end(),
                                    [](int64_t stride) { return stride > 1; });
  if (!is_apart && found->dims() < kLeastPlainDims) return std::nullopt;
  EditBuilder builder(uses, node);
  PlainConvolution plain(builder, *found, node.result_types.at(0).shape);
  if (!plain.HasForm() || plain.work() > kMostWork) return std::nullopt;
  return builder.Finish(plain.Write());
}

}  // namespace mtmc::kernel
