// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/row/row_start.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "kernel/templates/row/row_knobs.h"

namespace mtmc::kernel {
namespace {

// Elements of a row for each thread of a block, the least of them, and the least of those of a
// block of more than half its greatest size, whose warps take long to merge.
constexpr int64_t kElementsOfThread = 16;
constexpr int64_t kLeastElements = 8;
constexpr int64_t kLeastOfLargeBlock = 16;
// Threads per compute unit that hide the latency of memory: of blocks that merge what their
// threads have, and of threads that each walk down rows that lie side by side.
constexpr int64_t kThreadsOfBlocks = 256;
constexpr int64_t kThreadsOfRows = 512;
// Elements that a thread keeps for the next sweep, where more cost more registers than time: of
// a row among a block or among slices, and of rows of its own.
constexpr int64_t kKeptOfBlock = 24;
constexpr int64_t kKeptOfSlice = 16;
constexpr int64_t kKeptOfThread = 40;
// Rows up to this length leave a block without work; a few threads share each, of so many
// elements, where there are so many of them per compute unit.
constexpr int64_t kShortRow = 256;
constexpr int64_t kElementsOfShortRow = 8;
constexpr int64_t kShortRowsOfUnit = 32;
constexpr int64_t kShortRowsOfBlock = 4;
// Rows are cut into pieces, of which there are so many per compute unit, where they are so
// long, and so much longer than they are many, that the pieces' merge, another kernel, pays.
constexpr int64_t kLongRow = 48 << 10;
constexpr int64_t kLongRowOfFew = 16 << 10;
constexpr int64_t kFewRows = 4;
constexpr int64_t kColumnsOfRow = 1536;
constexpr double kPiecesOfUnit = 3.5;
constexpr int64_t kMostThreads = 1024;
// Rows side by side that would leave most of the device idle are cut, too, where there are so
// many elements: into pieces of so many columns for each of the threads that share a row.
constexpr int64_t kManyElements = 1 << 20;
constexpr int64_t kLeastOfPiece = 8;
// What the actions offer.
constexpr int64_t kPieces[] = {2, 4, 16, 64, 256};
// A run shorter than this of neighbouring elements is not worth a walk of its own.
constexpr int64_t kShortRun = 128;
// Most threads of a block that share a row, and fewest rows side by side for whole transactions.
constexpr int64_t kMostSlices = 32;
constexpr int64_t kRowsSideBySide = 32;
// Elements of a window of which threads side by side still read whole transactions.
constexpr int64_t kSmallWindow = 4;

// Whether an element is read again after the first sweep.
bool ReadsAgain(const SweepPlan::Stage& stage) {
  return stage.levels.size() > 1 || !stage.full_outputs.empty();
}

// Pieces of rows that lie side by side, so that each compute unit has a block.
int64_t PiecesOfNeighbours(const RowSpace& space, const EmitTarget& target,
                           const RowMapping& mapping) {
  const int64_t rows_of_block =
      std::max<int64_t>(mapping.block * mapping.vector / mapping.depth, 1);
  const int64_t blocks = (space.rows + rows_of_block - 1) / rows_of_block;
  if (blocks >= target.compute_units / 2 || space.rows * space.columns() < kManyElements) return 1;
  int64_t pieces = 1;
  for (const int64_t more : kPieces) {
    const bool is_enough = blocks * pieces >= target.compute_units;
    if (is_enough || space.columns() < more * mapping.depth * kLeastOfPiece) break;
    pieces = more;
  }
  return pieces;
}

// Threads side by side over rows that are neighbours in memory: the widest access with which
// there are threads enough, each row among as few of them as that needs.
RowMapping OverRows(const SweepPlan::Stage& stage, const EmitTarget& target, RowMapping mapping) {
  const RowSpace& space = stage.space;
  const int64_t wanted = target.compute_units * kThreadsOfRows;
  const int64_t most = PowerOfTwoUpTo(space.columns() / kLeastElements, 1, kMostSlices);
  // Missing threads count most, then elements that are read twice, then that slices are merged.
  using Cost = std::tuple<int64_t, bool, bool, int64_t, int64_t>;
  Cost least{wanted + 1, true, true, 0, 0};
  const int64_t lanes = mapping.vector;
  for (int64_t vector = lanes; vector >= 1; vector /= 2) {
    if (space.row_run % vector != 0) continue;
    for (int64_t depth = 1; depth <= most; depth *= 2) {
      const int64_t threads = space.rows / vector * depth;
      const int64_t elements = (space.columns() + depth - 1) / depth * vector;
      const int64_t kept = depth == 1 ? kKeptOfThread : kKeptOfSlice;
      const bool keeps = ReadsAgain(stage) && elements <= kept;
      const Cost cost{std::max<int64_t>(wanted - threads, 0), ReadsAgain(stage) && !keeps,
                      depth > 1, -vector, depth};
      if (cost >= least) continue;
      least = cost;
      mapping.vector = vector;
      mapping.depth = depth;
      mapping.cache = keeps ? 1 : 0;
    }
  }
  mapping.by_row = 1;
  mapping.block = std::clamp<int64_t>(kRowsSideBySide * mapping.depth, 256, kMostThreads);
  mapping.split = PiecesOfNeighbours(space, target, mapping);
  if (mapping.split > 1) mapping.cache = 0;
  return mapping;
}

// Pieces of each row: of those that the actions offer the nearest to what fills the device.
int64_t PiecesOf(const RowSpace& space, const EmitTarget& target) {
  const int64_t least =
      std::max(space.rows <= kFewRows ? kLongRowOfFew : kLongRow, kColumnsOfRow * space.rows);
  if (space.rows > target.compute_units / 2 || space.columns() < least) return 1;
  const double wanted = std::log2(kPiecesOfUnit * static_cast<double>(target.compute_units) /
                                  static_cast<double>(space.rows));
  const auto distance = [wanted](int64_t pieces) {
    return std::abs(std::log2(static_cast<double>(pieces)) - wanted);
  };
  return *std::min_element(std::begin(kPieces), std::end(kPieces),
                           [&](int64_t a, int64_t b) { return distance(a) < distance(b); });
}

// A block for each row, or for each piece of one.
RowMapping OverColumns(const SweepPlan::Stage& stage, const EmitTarget& target,
                       RowMapping mapping) {
  const RowSpace& space = stage.space;
  mapping.split = PiecesOf(space, target);
  if (mapping.split > 1) {
    mapping.block = 256;
    return mapping;
  }
  const int64_t most = space.rows < target.compute_units ? kMostThreads : kMostThreads / 2;
  const int64_t wanted = kThreadsOfBlocks * target.compute_units;
  const auto least = [](int64_t block) {
    return block > kMostThreads / 2 ? kLeastOfLargeBlock : kLeastElements;
  };
  mapping.block = PowerOfTwoUpTo(space.columns() / kElementsOfThread, 32, most);
  while (mapping.block < most && space.rows * mapping.block < wanted &&
         space.columns() >= 2 * mapping.block * least(2 * mapping.block)) {
    mapping.block *= 2;
  }
  // Longer than a run, a block would find its place by division at every step.
  const int64_t run = space.inner / mapping.vector;
  if (space.outer > 1 && run >= kShortRun) {
    mapping.block = std::min(mapping.block, PowerOfTwoUpTo(2 * run - 1, 256, kMostThreads));
  }
  const int64_t kept_of_runs = run >= kShortRun ? kMostCachedElements : 0;
  const int64_t kept = space.outer > 1 ? kept_of_runs : kKeptOfBlock;
  const int64_t elements = (space.columns() + mapping.block - 1) / mapping.block;
  mapping.cache = ReadsAgain(stage) && elements <= kept ? 1 : 0;
  return mapping;
}

}  // namespace

RowMapping StartingMapping(const GroupView& view, const EmitTarget& target, int64_t lanes) {
  RowMapping mapping = RowKnobs().Read(view);
  mapping.vector = lanes;
  const SweepPlan* plan = FindSweepPlan(view);
  if (plan == nullptr) return mapping;
  const SweepPlan::Stage& stage = MainStage(*plan);
  const RowSpace& space = stage.space;
  if (HasWindow(view)) {
    if (space.columns() > kSmallWindow) mapping.vector = 1;
    return mapping;
  }
  if (mapping.by_row != 0) return OverRows(stage, target, mapping);
  if (space.columns() <= kShortRow && space.rows >= kShortRowsOfUnit * target.compute_units) {
    const int64_t depth = PowerOfTwoUpTo(space.columns() / kElementsOfShortRow, 1, kMostSlices);
    return {.by_row = 1,
            .block = std::max<int64_t>(32, kShortRowsOfBlock * depth),
            .depth = depth,
            .cache = ReadsAgain(stage) ? 1 : 0};
  }
  return OverColumns(stage, target, mapping);
}

}  // namespace mtmc::kernel
