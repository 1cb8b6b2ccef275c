// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/row/row_loads.h"

#include <set>

#include "kernel/algebra/index_algebra.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

bool IsVectorWidth(int64_t lanes) { return lanes == 2 || lanes == 4 || lanes == 8 || lanes == 16; }

std::string KeyOfRead(const ElementRead& read) {
  return Concat(read.tensor, "[", ToText(read.offset), "]");
}

}  // namespace

// What the sweeps read more than once, as far as it fits in registers.
void RowLoads::Keep(const std::vector<ScalarPtr>& roots, int step_axis, int64_t steps) {
  int64_t elements = 0;
  for (const ScalarPtr& root : roots) {
    for (const ElementRead& read : ElementReads(view_, root, writer_.extents())) {
      const std::string key = KeyOfRead(read);
      if (kept_.contains(key) || !IsLoadable(read) || !UsesAxis(read.offset, step_axis)) continue;
      if (threads_.has_lanes() && !IsWide(read)) continue;
      elements += steps * threads_.lanes;
      if (elements > MostCachedElements(threads_.map.block)) return;
      const std::string array = writer_.Fresh(read.tensor + "_kept");
      writer_.Line(
          Concat(writer_.text().ComputeType(view_.nest->types.find(read.tensor)->second.data_type),
                 " ", array, "[", steps * threads_.lanes, "];"));
      kept_.emplace(key, Kept{array, /*is_filled=*/false});
    }
  }
}

bool RowLoads::IsLoadable(const ElementRead& read) const {
  return !read.is_guarded && FindLoop(view_, read.tensor) == nullptr;
}

bool RowLoads::IsWide(const ElementRead& read) const {
  if (!threads_.is_gpu || !IsVectorWidth(threads_.lanes)) return false;
  const auto stride = StrideAlong(read.offset, lane_->axis, writer_.extents());
  return stride && stride->stride == 1 && stride->alignment % threads_.lanes == 0;
}

// Loads runs of consecutive elements as vectors, and what is kept from or for
// another sweep through its array.
void RowLoads::Load(const std::vector<ScalarPtr>& roots) {
  loads_.clear();
  std::set<std::string> seen;
  for (const ScalarPtr& root : roots) {
    for (const ElementRead& read : ElementReads(view_, root, writer_.extents())) {
      const std::string key = KeyOfRead(read);
      if (!IsLoadable(read) || !seen.insert(key).second) continue;
      const auto kept = kept_.find(key);
      const bool is_kept = kept != kept_.end();
      const std::string slot =
          threads_.has_lanes() ? Concat("[j * ", threads_.lanes, " + v]") : "[j]";
      if (is_kept && kept->second.is_filled) {
        loads_.push_back({read.tensor, read.indices, kept->second.array + slot});
        continue;
      }
      if (threads_.has_lanes() && IsWide(read)) {
        const std::string array = writer_.Fresh(read.tensor + "_v");
        writer_.LoadVector(array, read.tensor, Sub(read.offset, lane_),
                           static_cast<int>(threads_.lanes));
        loads_.push_back({read.tensor, read.indices, array + "[v]"});
        if (is_kept) {
          writer_.Unroll();
          writer_.Line(Concat("for (int v = 0; v < ", threads_.lanes, "; ++v) ", kept->second.array,
                              slot, " = ", array, "[v];"));
        }
      } else if (is_kept) {
        const std::string value = writer_.Value(read.tensor, read.indices);
        writer_.Line(Concat(kept->second.array, slot, " = ", value, ";"));
      }
      if (is_kept) kept->second.is_filled = true;
    }
  }
}

void RowLoads::Bind() {
  for (const Loaded& load : loads_) writer_.Bind(load.tensor, load.indices, load.text);
}

}  // namespace mtmc::kernel
