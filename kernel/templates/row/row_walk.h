// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "kernel/templates/row/row_mapping.h"
#include "kernel/view/row_space.h"
#include "kernel/writer/kernel_writer.h"

namespace mtmc::kernel {

// The walk of a kernel's threads over the rows and columns of a space: which row
// a thread is on, and the loops over the columns that are its own. Prints into a
// kernel; the text is the same each time the walk is opened.
class RowWalk {
 public:
  // What a block has of its rows' columns: all of them; one of the pieces they
  // are split into, which the variable `piece` counts; or instead of columns the
  // states that the pieces have left, one thread per row.
  enum class Part { kWhole, kPiece, kPieces };

  // Declares the thread's variables and the axes. All arguments outlive it.
  RowWalk(const RowSpace& space, const RowThreads& threads, Part part, KernelWriter& writer);

  // The flat position of the present element over the writer's axes; within the
  // loop over lanes, whose axis is `lane`.
  const ScalarPtr& row() const { return row_; }

  const ScalarPtr& column() const { return column_; }

  const ScalarPtr& lane() const { return lane_; }

  // The axis that tells rows apart, and the one that a thread's loop advances.
  int row_axis() const { return row_axis_; }

  int step_axis() const { return step_axis_; }

  // Whether a thread's loop has a constant number of steps, counted by `j`, so
  // that what it loads can stay in registers.
  bool keeps() const { return keeps_; }

  int64_t steps() const { return steps_; }

  // Columns, or chunks of lanes, that one thread takes one after another.
  int64_t steps_in_a_row() const;

  // Blocks of the launch, a plan expression.
  const std::string& grid() const { return grid_; }

  // Begins and ends the loops over the thread's columns.
  void Open();
  void Close();

 private:
  std::string LoopHead(const std::string& variable, const std::string& first, int64_t count,
                       const std::string& step) const;

  const RowSpace& space_;
  const RowThreads& threads_;
  const Part part_;
  KernelWriter& writer_;
  ScalarPtr row_;
  ScalarPtr column_;
  ScalarPtr lane_;
  int row_axis_ = 0;
  int step_axis_ = 0;
  int64_t outer_ = 1;
  // In steps of a thread: chunks of lanes, or columns by row.
  int64_t inner_ = 1;
  int64_t steps_ = 1;
  bool keeps_ = false;
  std::string grid_;
  int open_scopes_ = 0;
};

}  // namespace mtmc::kernel
