// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
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

// Writes a transposed convolution as a plain one. With stride s an output at s t + r meets the
// taps r, r + s, r + 2 s, ... alone, so that each remainder r is a channel of its own, of a
// convolution of stride 1 with a part of the taps, turned around; then channels become places.
// For stride 1 there is one remainder.
class PlainConvolution {
 public:
  // `from` is transposed and gives `extents`.
  PlainConvolution(EditBuilder& builder, const ConvolutionNode& from,
                   const std::vector<int64_t>& extents)
      : builder_(builder),
        from_(from),
        weight_(builder.TypeOf(from.weight).shape),
        extents_(extents) {
    for (size_t d = 0; d < from.dims(); ++d) {
      const int64_t stride = from.stride.at(d);
      taps_.push_back(CeilDivide(weight_.at(d + 2), stride));
      if (stride == 1) continue;
      remainders_ *= stride;
      // Places that no tap meets, which output padding adds, have one of zero.
      const int64_t places = CeilDivide(from.padding.at(d) + extents.at(d + 2), stride);
      taps_.back() = std::max(taps_.back(), places - InputExtent(d) + 1);
    }
  }

  // Whether each axis has a form here.
  bool HasForm() const {
    for (size_t d = 0; d < from_.dims(); ++d) {
      const bool is_whole = from_.output_padding.at(d) == 0 &&
                            from_.padding.at(d) <= (taps_.at(d) - 1) * from_.dilation.at(d);
      if (from_.stride.at(d) == 1 ? !is_whole : from_.dilation.at(d) != 1) return false;
    }
    return true;
  }

  // How many times more it multiplies.
  double work() const {
    double work = 1;
    for (size_t d = 0; d < from_.dims(); ++d) {
      if (from_.stride.at(d) == 1) continue;
      const auto places = static_cast<double>(InputExtent(d) + taps_.at(d) - 1);
      const int64_t taps = taps_.at(d) * from_.stride.at(d);
      work *= places / static_cast<double>(InputExtent(d)) * static_cast<double>(taps) /
              static_cast<double>(weight_.at(d + 2));
    }
    return work;
  }

  // The result. REQUIRES: HasForm().
  std::string Write() {
    EditBuilder::Geometry geometry{.groups = from_.groups};
    for (size_t d = 0; d < from_.dims(); ++d) {
      geometry.stride.push_back(1);
      geometry.dilation.push_back(from_.dilation.at(d));
      geometry.padding.push_back((taps_.at(d) - 1) * from_.dilation.at(d) - Cut(d));
    }
    const bool has_one = remainders_ == 1;
    const std::string bias = has_one ? from_.bias : "";
    std::string channels = builder_.Convolution(from_.input, TurnedWeight(), bias, geometry);
    if (has_one) return channels;
    std::string result = Placed(channels);
    for (size_t d = 0; d < from_.dims(); ++d) {
      const int64_t start = from_.stride.at(d) == 1 ? 0 : from_.padding.at(d);
      result = builder_.Slice(result, AxisOf(d), start, extents_.at(d + 2));
    }
    if (from_.bias.empty()) return result;
    std::vector<int64_t> shape(from_.dims() + 1, 1);
    shape.at(0) = outputs();
    return builder_.Plus(result, builder_.Reshape(from_.bias, shape));
  }

 private:
  int64_t InputExtent(size_t d) const { return builder_.TypeOf(from_.input).shape.at(d + 2); }

  int64_t outputs() const { return weight_.at(1) * from_.groups; }

  // Elements at either end that the padding of the plain one leaves out; with remainders they are
  // cut off later.
  int64_t Cut(size_t d) const { return from_.stride.at(d) == 1 ? from_.padding.at(d) : 0; }

  // [C, O / groups, taps...] as [O remainders, C / groups, taps of one remainder, turned...].
  std::string TurnedWeight() {
    std::string weight = from_.weight;
    std::vector<int64_t> split = {from_.groups, weight_.at(0) / from_.groups, weight_.at(1)};
    std::vector<int> order = {0, 2};
    std::vector<int> turned;
    std::vector<int64_t> shape = {outputs() * remainders_, split.at(1)};
    for (size_t d = 0; d < from_.dims(); ++d) {
      const int64_t stride = from_.stride.at(d);
      weight = builder_.Pad(weight, AxisOf(d), 0, taps_.at(d) * stride - weight_.at(d + 2));
      turned.push_back(static_cast<int>(split.size()));
      split.insert(split.end(), {taps_.at(d), stride});
      order.push_back(turned.back() + 1);
      shape.push_back(taps_.at(d));
    }
    order.push_back(1);
    order.insert(order.end(), turned.begin(), turned.end());
    weight = builder_.Flip(builder_.Reshape(weight, split), turned);
    return builder_.Reshape(builder_.Permute(weight, order), shape);
  }

  // [N, O remainders, places...] as [N, O, places with their remainders...].
  std::string Placed(const std::string& value) {
    const std::vector<int64_t> from = builder_.TypeOf(value).shape;
    const int dims = static_cast<int>(from_.dims());
    std::vector<int64_t> split = {from.at(0), outputs()};
    split.insert(split.end(), from_.stride.begin(), from_.stride.end());
    split.insert(split.end(), from.begin() + 2, from.end());
    std::vector<int> order = {0, 1};
    std::vector<int64_t> shape = {from.at(0), outputs()};
    for (int d = 0; d < dims; ++d) {
      order.insert(order.end(), {2 + dims + d, 2 + d});
      const auto at = static_cast<size_t>(d);
      shape.push_back(from.at(at + 2) * from_.stride.at(at));
    }
    return builder_.Reshape(builder_.Permute(builder_.Reshape(value, split), order), shape);
  }

  EditBuilder& builder_;
  const ConvolutionNode& from_;
  const std::vector<int64_t> weight_;
  const std::vector<int64_t>& extents_;
  // Of one remainder, along each axis.
  std::vector<int64_t> taps_;
  // Along all axes.
  int64_t remainders_ = 1;
};

}  // namespace

std::optional<GraphEdit> FindPlainConvolution(const GraphUses& uses, const GraphNode& node) {
  const std::optional<ConvolutionNode> found = FindConvolution(uses, node);
  if (!found || !found->is_transposed || !uses.IsRead(node.results.at(0))) return std::nullopt;
  const bool has_remainders = std::any_of(found->stride.begin(), found->stride.end(),
                                          [](int64_t stride) { return stride > 1; });
  if (!has_remainders && found->dims() < kLeastPlainDims) return std::nullopt;
  EditBuilder builder(uses, node);
  PlainConvolution plain(builder, *found, node.result_types.at(0).shape);
  if (!plain.HasForm() || plain.work() > kMostWork) return std::nullopt;
  return builder.Finish(plain.Write());
}

}  // namespace mtmc::kernel
