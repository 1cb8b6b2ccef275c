// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "kernel/loops/op_table.h"

namespace mtmc::kernel {
namespace {

using Operator = Scalar::Operator;

// A pooling over the last `dims` dimensions.
struct Window {
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride;
  std::vector<int64_t> padding;
  std::vector<int64_t> dilation;

  size_t dims() const { return kernel.size(); }
};

Window WindowOf(const NodeLowering& node, size_t dims) {
  Window window;
  window.kernel = node.Ints("kernel_size", dims, 1);
  window.stride = window.kernel;
  const auto stride = node.FindInts("stride");
  if (stride && !stride->empty()) window.stride = node.Ints("stride", dims, 1);
  window.padding = node.Ints("padding", dims, 0);
  window.dilation = node.Ints("dilation", dims, 1);
  RequireWindowValues(window.kernel, 1);
  RequireWindowValues(window.stride, 1);
  RequireWindowValues(window.dilation, 1);
  RequireWindowValues(window.padding, 0);
  return window;
}

// Input indices of an element of the window, and whether they lie inside.
// `axes` are the output's dimensions, then the window's.
struct Position {
  std::vector<ScalarPtr> indices;
  ScalarPtr is_inside;
};

Position PositionIn(const Window& window, const Elements& input,
                    const std::vector<int64_t>& output_shape, const std::vector<ScalarPtr>& axes) {
  const size_t rank = output_shape.size();
  const size_t first = rank - window.dims();
  Require(rank >= window.dims() && input.type.shape.size() == rank);
  Position position{Part(axes, 0, static_cast<int64_t>(first)), Literal(1, DataType::kBool)};
  for (size_t d = 0; d < window.dims(); ++d) {
    const ScalarPtr index = Sub(Add(Mul(axes.at(first + d), Index(window.stride.at(d))),
                                    Mul(axes.at(rank + d), Index(window.dilation.at(d)))),
                                Index(window.padding.at(d)));
    const int64_t extent = input.type.shape.at(first + d);
    const int64_t last = (output_shape.at(first + d) - 1) * window.stride.at(d) +
                         (window.kernel.at(d) - 1) * window.dilation.at(d) - window.padding.at(d);
    if (window.padding.at(d) > 0) {
      position.is_inside = And(position.is_inside, LessEqual(Index(0), index));
    }
    if (last >= extent) {
      position.is_inside = And(position.is_inside, Less(index, Index(extent)));
    }
    position.indices.push_back(index);
  }
  return position;
}

// Row-major index within the last dimensions of the input of element `chosen` of
// the window, as PyTorch's pooling returns it.
ScalarPtr InputOffset(const Window& window, const Elements& input,
                      const std::vector<ScalarPtr>& axes, const ScalarPtr& chosen) {
  const size_t first = axes.size() - window.dims();
  ScalarPtr offset = Index(0);
  int64_t inner = 1;
  for (const int64_t extent : window.kernel) inner *= extent;
  for (size_t d = 0; d < window.dims(); ++d) {
    inner /= window.kernel.at(d);
    ScalarPtr tap = FloorDiv(chosen, inner);
    if (d > 0) tap = Mod(tap, window.kernel.at(d));
    const ScalarPtr index = Sub(Add(Mul(axes.at(first + d), Index(window.stride.at(d))),
                                    Mul(tap, Index(window.dilation.at(d)))),
                                Index(window.padding.at(d)));
    offset = Add(Mul(offset, Index(input.type.shape.at(first + d))), index);
  }
  return offset;
}

// A pooling whose node may have its channels last, as one that has them first.
struct Pooling {
  Elements input;
  // Of the result.
  TensorType type;
  bool is_channels_last = false;

  Pooling(const Elements& self, TensorType result, bool channels_last)
      : input(channels_last ? WithChannelsFirst(self) : self),
        type(std::move(result)),
        is_channels_last(channels_last) {
    if (channels_last) type.shape = ChannelsFirst(type.shape, type.shape.size());
  }

  // Of the node's own.
  std::vector<ScalarPtr> AxesOf(const std::vector<ScalarPtr>& axes) const {
    return is_channels_last ? ChannelsFirst(axes, type.shape.size()) : axes;
  }
};

LowerNode MaxPool(size_t dims, bool is_channels_last = false) {
  return [dims, is_channels_last](NodeLowering& node) {
    const TensorType& type = node.result_type();
    if (!IsFloating(type.data_type)) return false;
    const Pooling pooling(node.Tensor("self"), type, is_channels_last);
    const Elements& input = pooling.input;
    const Window window = WindowOf(node, dims);
    const auto body = [&](const std::vector<ScalarPtr>& given) {
      const std::vector<ScalarPtr> axes = pooling.AxesOf(given);
      const Position position = PositionIn(window, input, pooling.type.shape, axes);
      return Select(position.is_inside, input.at(position.indices),
                    Literal(-std::numeric_limits<double>::infinity(), type.data_type));
    };
    if (node.result_count() == 1) {
      node.ReduceWindow(type, window.kernel, body,
                        {.combiner = Combiner::kMax, .name = node.result()});
      return true;
    }
    if (is_channels_last) return false;
    const std::string chosen = node.NameOf("chosen");
    node.ReduceWindow(type, window.kernel, body,
                      {.combiner = Combiner::kArgMax, .name = node.result(), .second = chosen});
    const Elements taps = node.Value(chosen);
    node.Define({node.result_type(1),
                 [&](const std::vector<ScalarPtr>& axes) {
                   return InputOffset(window, input, axes, taps.at(axes));
                 }},
                1);
    return true;
  };
}

// How many elements average pooling divides by at an output position.
ScalarPtr AverageDivisor(const Window& window, const Elements& input, bool counts_padding,
                         const std::vector<int64_t>& output_shape,
                         const std::vector<ScalarPtr>& axes) {
  const size_t first = axes.size() - window.dims();
  ScalarPtr count = Index(1);
  for (size_t d = 0; d < window.dims(); ++d) {
    const int64_t low = counts_padding ? -window.padding.at(d) : 0;
    const int64_t high =
        input.type.shape.at(first + d) + (counts_padding ? window.padding.at(d) : 0);
    const int64_t last_end = (output_shape.at(first + d) - 1) * window.stride.at(d) -
                             window.padding.at(d) + window.kernel.at(d);
    if (-window.padding.at(d) >= low && last_end <= high) {
      count = Mul(count, Index(window.kernel.at(d)));
      continue;
    }
    const ScalarPtr begin =
        Sub(Mul(axes.at(first + d), Index(window.stride.at(d))), Index(window.padding.at(d)));
    const ScalarPtr end =
        Apply(Operator::kMin, {Add(begin, Index(window.kernel.at(d))), Index(high)});
    count = Mul(count, Sub(end, Apply(Operator::kMax, {begin, Index(low)})));
  }
  return count;
}

LowerNode AveragePool(size_t dims, bool is_channels_last = false) {
  return [dims, is_channels_last](NodeLowering& node) {
    const TensorType type{ComputeType(node.result_type().data_type), node.result_type().shape};
    const Pooling pooling(CastTo(node.Tensor("self"), type.data_type), type, is_channels_last);
    const Elements& input = pooling.input;
    const std::vector<int64_t>& shape = pooling.type.shape;
    const Window window = WindowOf(node, dims);
    const Elements total = node.ReduceWindow(
        type, window.kernel,
        [&](const std::vector<ScalarPtr>& axes) {
          const Position position = PositionIn(window, input, shape, pooling.AxesOf(axes));
          return Select(position.is_inside, input.at(position.indices), Literal(0, type.data_type));
        },
        {.combiner = Combiner::kSum, .name = node.NameOf("total")});
    const bool counts_padding = node.Bool("count_include_pad", true);
    const auto fixed = node.FindInt("divisor_override");
    node.Define({type, [&](const std::vector<ScalarPtr>& axes) {
                   const ScalarPtr divisor = fixed ? Index(*fixed)
                                                   : AverageDivisor(window, input, counts_padding,
                                                                    shape, pooling.AxesOf(axes));
                   return Div(total.at(axes), Cast(divisor, type.data_type));
                 }});
    return true;
  };
}

// First element of the window of output `o`: floor(o * in / out); the window ends
// before ceil((o + 1) * in / out).
ScalarPtr AdaptiveBegin(const ScalarPtr& o, int64_t in, int64_t out) {
  if (in % out == 0) return Mul(o, Index(in / out));
  return FloorDiv(Mul(o, Index(in)), out);
}

ScalarPtr AdaptiveEnd(const ScalarPtr& o, int64_t in, int64_t out) {
  if (in % out == 0) return Mul(Add(o, Index(1)), Index(in / out));
  return FloorDiv(Add(Mul(Add(o, Index(1)), Index(in)), Index(out - 1)), out);
}

int64_t LargestAdaptiveWindow(int64_t in, int64_t out) {
  // Bounds the loop; far above any model's.
  Require(in >= 1 && out >= 1 && out <= int64_t{1} << 16);
  int64_t largest = 0;
  for (int64_t o = 0; o < out; ++o) {
    const int64_t begin = o * in / out;
    const int64_t end = ((o + 1) * in + out - 1) / out;
    largest = std::max(largest, end - begin);
  }
  return largest;
}

// As InputOffset, for a window that begins at `begin` of the last dimensions.
ScalarPtr AdaptiveOffset(const Elements& input, const std::vector<int64_t>& window,
                         const std::vector<ScalarPtr>& begin, const ScalarPtr& chosen) {
  const size_t first = input.type.shape.size() - window.size();
  ScalarPtr offset = Index(0);
  int64_t inner = 1;
  for (const int64_t extent : window) inner *= extent;
  for (size_t d = 0; d < window.size(); ++d) {
    inner /= window.at(d);
    ScalarPtr tap = FloorDiv(chosen, inner);
    if (d > 0) tap = Mod(tap, window.at(d));
    offset = Add(Mul(offset, Index(input.type.shape.at(first + d))), Add(begin.at(d), tap));
  }
  return offset;
}

LowerNode AdaptivePool(size_t dims, bool is_average) {
  return [=](NodeLowering& node) {
    const TensorType type{ComputeType(node.result_type().data_type), node.result_type().shape};
    const Elements input = CastTo(node.Tensor("self"), type.data_type);
    const size_t rank = type.shape.size();
    Require(rank >= dims && input.type.shape.size() == rank);
    const size_t first = rank - dims;
    std::vector<int64_t> window;
    for (size_t d = first; d < rank; ++d) {
      window.push_back(LargestAdaptiveWindow(input.type.shape.at(d), type.shape.at(d)));
    }
    const double neutral = is_average ? 0 : -std::numeric_limits<double>::infinity();
    const auto body = [&](const std::vector<ScalarPtr>& axes) {
      std::vector<ScalarPtr> indices = Part(axes, 0, static_cast<int64_t>(rank));
      ScalarPtr is_inside = Literal(1, DataType::kBool);
      for (size_t d = 0; d < dims; ++d) {
        const int64_t in = input.type.shape.at(first + d);
        const int64_t out = type.shape.at(first + d);
        const ScalarPtr& o = axes.at(first + d);
        indices.at(first + d) = Add(AdaptiveBegin(o, in, out), axes.at(rank + d));
        if (in % out != 0) {
          is_inside = And(is_inside, Less(indices.at(first + d), AdaptiveEnd(o, in, out)));
        }
      }
      return Select(is_inside, input.at(indices), Literal(neutral, type.data_type));
    };
    const bool has_index = node.result_count() == 2;
    const std::string chosen = has_index ? node.NameOf("chosen") : "";
    const Elements reduced =
        node.ReduceWindow(type, window, body,
                          {.combiner = is_average  ? Combiner::kSum
                                       : has_index ? Combiner::kArgMax
                                                   : Combiner::kMax,
                           .name = node.NameOf(is_average ? "total" : "largest"),
                           .second = chosen});
    node.Define({type, [&](const std::vector<ScalarPtr>& axes) {
                   if (!is_average) return reduced.at(axes);
                   ScalarPtr count = Index(1);
                   for (size_t d = first; d < rank; ++d) {
                     const int64_t in = input.type.shape.at(d);
                     const int64_t out = type.shape.at(d);
                     count = Mul(count, in % out == 0 ? Index(in / out)
                                                      : Sub(AdaptiveEnd(axes.at(d), in, out),
                                                            AdaptiveBegin(axes.at(d), in, out)));
                   }
                   return Div(reduced.at(axes), Cast(count, type.data_type));
                 }});
    if (!has_index) return true;
    const Elements taps = node.Value(chosen);
    node.Define(
        {node.result_type(1),
         [&](const std::vector<ScalarPtr>& axes) {
           std::vector<ScalarPtr> begin;
           for (size_t d = first; d < rank; ++d) {
             begin.push_back(AdaptiveBegin(axes.at(d), input.type.shape.at(d), type.shape.at(d)));
           }
           return AdaptiveOffset(input, window, begin, taps.at(axes));
         }},
        1);
    return true;
  };
}

}  // namespace

void AddWindowOps(OpTable& table) {
  for (const size_t dims : {1, 2, 3}) {
    const std::string suffix = std::to_string(dims) + "d";
    table["max_pool" + suffix] = MaxPool(dims);
    table["max_pool" + suffix + "_with_indices"] = MaxPool(dims);
    table["avg_pool" + suffix] = AveragePool(dims);
    // Of our own (kernel/rewrite/channels_last.cc).
    table["max_pool" + suffix + "_channels_last"] = MaxPool(dims, /*is_channels_last=*/true);
    table["avg_pool" + suffix + "_channels_last"] = AveragePool(dims, /*is_channels_last=*/true);
    table["adaptive_avg_pool" + suffix] = AdaptivePool(dims, /*is_average=*/true);
    table["_adaptive_avg_pool" + suffix] = AdaptivePool(dims, /*is_average=*/true);
    table["adaptive_max_pool" + suffix] = AdaptivePool(dims, /*is_average=*/false);
  }
}

}  // namespace mtmc::kernel
