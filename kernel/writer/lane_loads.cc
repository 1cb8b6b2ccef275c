// SPDX-License-Identifier: Apache-2.0
#include "kernel/writer/lane_loads.h"

#include <algorithm>
#include <optional>

#include "kernel/algebra/scalar_key.h"
#include "kernel/graph/text.h"
#include "kernel/view/group_view.h"

namespace mtmc::kernel {

std::vector<LaneArray> PrintLaneLoads(KernelWriter& writer, const GroupView& view,
                                      const std::vector<ScalarPtr>& roots, const ScalarPtr& lane,
                                      int lanes) {
  std::vector<LaneArray> arrays;
  std::vector<std::string> seen;
  for (const ScalarPtr& root : roots) {
    for (const ElementRead& read : ElementReads(view, root, writer.extents())) {
      const std::string key = read.tensor + KeyOf(read.offset);
      if (read.is_guarded || !writer.IsReadable(read.tensor)) continue;
      if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
      seen.push_back(key);
      const std::optional<AxisStride> stride =
          StrideAlong(read.offset, lane->axis, writer.extents());
      if (!stride) continue;
      if (stride->stride == 0) {
        writer.Value(read.tensor, read.indices);
      } else if (stride->stride == 1 && stride->alignment % lanes == 0) {
        const std::string array = writer.Fresh(read.tensor + "_v");
        writer.LoadVector(array, read.tensor, Sub(read.offset, lane), lanes);
        arrays.push_back({read.tensor, read.indices, array});
      }
    }
  }
  return arrays;
}

void BindLanes(KernelWriter& writer, const std::vector<LaneArray>& arrays, std::string_view lane) {
  for (const LaneArray& load : arrays) {
    writer.Bind(load.tensor, load.indices, Concat(load.array, "[", lane, "]"));
  }
}

}  // namespace mtmc::kernel
