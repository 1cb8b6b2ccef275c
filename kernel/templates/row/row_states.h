// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "kernel/templates/row/row_mapping.h"
#include "kernel/view/row_space.h"
#include "kernel/writer/accumulator.h"
#include "kernel/writer/kernel_writer.h"

namespace mtmc::kernel {

// The running states of the reductions that one sweep over a row computes: where
// the threads of a block keep them, how an element enters them and how the
// threads' states become one. Prints into a kernel; the order of calls is
//
//   RowStates states(level, threads, writer);  // declares them, empty
//   <loop over the thread's elements>
//     states.CountElement();
//     <loop over lanes v>  states.AddElement(row, column);
//   states.MergeBlock();
//
// after which every thread that stores a row has the row's state: in scalars, or
// by row in lane arrays. Lives as long as the printing of its sweep.
class RowStates {
 public:
  struct State {
    Accumulator accumulator;
    // Of its variables, to which each field adds a suffix.
    std::string name;
  };

  // `threads` and `writer` outlive it.
  RowStates(const std::vector<const Loop*>& level, const RowThreads& threads, KernelWriter& writer);

  const std::vector<State>& states() const { return states_; }

  // Before the lanes of an element: they share one Welford count.
  void CountElement();
  // Within the loop over lanes, `row` and `column` being flat positions.
  void AddElement(const ScalarPtr& row, const ScalarPtr& column);

  // Makes one state of those of lanes, threads or slices.
  void MergeBlock();
  // The same for states that are scalars in each thread.
  void MergeThreads();
  // Adds the state at `from` to the one at `to`.
  void Merge(const State& state, const Accumulator::Access& to, const Accumulator::Access& from);

  // The fields of a state in a thread's scalars, and in its lane arrays, which are
  // the scalars if there is one lane.
  static Accumulator::Access Scalar(const State& state);
  Accumulator::Access Lane(const State& state, const std::string& lane) const;

 private:
  void Declare(const State& state);
  void MergeLanes();
  void MergeWarps();
  void MergeShared();
  void MergeDepth();

  const RowThreads& threads_;
  KernelWriter& writer_;
  std::vector<State> states_;
};

}  // namespace mtmc::kernel
