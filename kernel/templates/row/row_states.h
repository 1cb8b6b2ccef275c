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
//     states.EndElement();
//   states.MergeBlock();
//
// after which every thread that stores a row has the row's state: in scalars, or
// by row in lane arrays. Lives as long as the printing of its sweep.
//
// Where a thread takes many elements one after another, its sums are blocked: each run of
// kBlockedRun of them goes into a state of its own, which then enters the total. So a sum's
// rounding does not grow with its length (N. Higham, "The accuracy of floating point
// summation", 1993).
class RowStates {
 public:
  struct State {
    Accumulator accumulator;
    // Of its variables, to which each field adds a suffix.
    std::string name;
  };

  // Elements of one run, and from how many on there are runs.
  static constexpr int64_t kBlockedRun = 1024;
  static constexpr int64_t kMostInARow = 4096;

  // `threads` and `writer` outlive it. A thread takes `steps` elements in each lane.
  RowStates(const std::vector<const Loop*>& level, const RowThreads& threads, int64_t steps,
            KernelWriter& writer);

  const std::vector<State>& states() const { return states_; }

  // Before the lanes of an element: they share one Welford count.
  void CountElement();
  // Within the loop over lanes, `row` and `column` being flat positions.
  void AddElement(const ScalarPtr& row, const ScalarPtr& column);
  // Behind the loop over lanes.
  void EndElement();

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
  void DeclareTotals();
  // Adds the states of a run to the totals, and empties them.
  void EndRun();
  void TakeTotals();
  void OpenLanes();
  void CloseLanes();
  std::vector<const State*> RunningSums() const;
  Accumulator::Access Total(const State& state) const;
  void MergeLanes();
  void MergeWarps();
  void MergeShared();
  void MergeDepth();

  const RowThreads& threads_;
  KernelWriter& writer_;
  std::vector<State> states_;
  // Counts the elements of a run; empty where there are none.
  std::string run_;
};

}  // namespace mtmc::kernel
