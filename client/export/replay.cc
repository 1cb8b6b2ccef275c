// SPDX-License-Identifier: Apache-2.0
#include "client/export/replay.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <variant>

namespace mtmc::client {
namespace {

// Calls that ask the device for nothing and never wait for it, so that each of them can be
// captured. Sorted.
constexpr auto kCapturable =
    std::to_array<std::string_view>({"aten::addmm",
                                     "aten::addmv",
                                     "aten::avg_pool1d",
                                     "aten::avg_pool2d",
                                     "aten::avg_pool3d",
                                     "aten::baddbmm",
                                     "aten::bmm",
                                     "aten::conv1d",
                                     "aten::conv2d",
                                     "aten::conv3d",
                                     "aten::conv_transpose1d",
                                     "aten::conv_transpose2d",
                                     "aten::conv_transpose3d",
                                     "aten::convolution",
                                     "aten::linear",
                                     "aten::matmul",
                                     "aten::max_pool1d",
                                     "aten::max_pool2d",
                                     "aten::max_pool3d",
                                     "aten::mm",
                                     "aten::mv",
                                     "aten::scaled_dot_product_attention"});

// Each about 4 microseconds of an H200: to copy these bytes, and to have Python launch.
constexpr int64_t kCopied = int64_t{4} << 20;
// Whoever writes as much in a step hides the launch of the next one.
constexpr int64_t kHidden = int64_t{16} << 20;

bool IsCapturable(const kernel::LibraryCall& call) {
  return std::binary_search(kCapturable.begin(), kCapturable.end(), std::string_view(call.op));
}

}  // namespace

bool ReplayPays(const kernel::Program& program) {
  using kernel::Tensor;
  int64_t calls = 0;
  std::set<std::string> brought;
  for (const kernel::Step& step : program.steps) {
    const auto* call = std::get_if<kernel::LibraryCall>(&step);
    if (call == nullptr) continue;
    if (!program.has_capture && !IsCapturable(*call)) return false;
    ++calls;
    brought.insert(call->results.begin(), call->results.end());
  }
  int64_t copied = 0;
  int64_t written = 0;
  for (const Tensor& tensor : program.tensors) {
    const bool is_output = tensor.role == Tensor::Role::kOutput;
    if (!is_output && tensor.role != Tensor::Role::kBuffer) continue;
    written += tensor.type.bytes();
    if (is_output && brought.contains(tensor.name)) copied += tensor.type.bytes();
  }
  const auto steps = static_cast<int64_t>(program.steps.size());
  // The copy is a launch of its own; a call costs as much as several.
  const int64_t saved = steps - 1 + 3 * calls;
  return saved > 0 && copied <= saved * kCopied && written <= steps * kHidden;
}

}  // namespace mtmc::client
