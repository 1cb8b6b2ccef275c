// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernel/templates/row/row_mapping.h"
#include "kernel/view/group_view.h"
#include "kernel/writer/kernel_writer.h"

namespace mtmc::kernel {

// What a thread has loaded of its elements: runs of consecutive elements as
// vectors, and elements that a later sweep reads again in arrays that stay in
// registers. Prints into a kernel; lives as long as the printing of it.
class RowLoads {
 public:
  // All arguments outlive it.
  RowLoads(const GroupView& view, const RowThreads& threads, KernelWriter& writer)
      : view_(view), threads_(threads), writer_(writer) {}

  // The axis of the lane loop, known before anything else is called.
  void SetLane(const ScalarPtr& lane) { lane_ = lane; }

  // Declares arrays for what the sweeps that evaluate `roots` read at each value
  // of `step_axis`, which takes `steps` values in a thread, as far as it fits.
  void Keep(const std::vector<ScalarPtr>& roots, int step_axis, int64_t steps);

  // Loads what `roots` read at the present element, forgetting what was loaded
  // before. Within the loop over steps `j` where something is kept.
  void Load(const std::vector<ScalarPtr>& roots);

  // Makes what is loaded known, within the loop over lanes `v`.
  void Bind();

  void Clear() { loads_.clear(); }

  // Whether the read needs no condition, and is of memory.
  bool IsLoadable(const ElementRead& read) const;
  // Whether the lanes' elements lie side by side, aligned as a vector.
  bool IsWide(const ElementRead& read) const;

 private:
  struct Loaded {
    std::string tensor;
    std::vector<ScalarPtr> indices;
    std::string text;  // of one lane
  };

  struct Kept {
    std::string array;
    bool is_filled = false;
  };

  const GroupView& view_;
  const RowThreads& threads_;
  KernelWriter& writer_;
  ScalarPtr lane_;
  std::vector<Loaded> loads_;
  // By the key of the read.
  std::map<std::string, Kept> kept_;
};

}  // namespace mtmc::kernel
