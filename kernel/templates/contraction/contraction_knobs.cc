// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/contraction/contraction_knobs.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "kernel/graph/text.h"
#include "kernel/templates/contraction/contraction_registers.h"
#include "kernel/templates/starting_steps.h"
#include "kernel/view/contraction_space.h"

namespace mtmc::kernel {
namespace {

using Table = TypedKnobTable<ContractionKnobs>;

struct Tile {
  int64_t bm;
  int64_t bn;
  int64_t bk;
  int64_t tm;
  int64_t tn;
};

// 256 threads with 64 sums each come near the FP32 peak; smaller blocks fill the device when
// the matrix is small, and flat ones fit narrow matrices.
constexpr Tile kTiles[] = {{128, 128, 16, 8, 8}, {64, 64, 16, 4, 4}, {128, 64, 16, 8, 4},
                           {64, 128, 16, 4, 8},  {32, 64, 32, 4, 4}, {64, 32, 32, 4, 4}};

// Of the 255 registers of a thread: its sums, and what it fetches for the next step.
constexpr int64_t kMaxSums = 128;
constexpr int64_t kMaxFetched = 64;

// Elements by which each row of a tile in shared memory is longer (`contraction_tiles.cc`).
constexpr int64_t kPadding = 4;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / std::max<int64_t>(b, 1); }

ContractionKnobs DefaultsOf(const GroupView&, const EmitTarget& target) {
  return {.block = std::min<int64_t>(target.max_threads_per_block, 256)};
}

absl::Status CheckTile(const ContractionKnobs& knobs, const GroupView& view,
                       const EmitTarget& target) {
  if (knobs.tm > knobs.bm) return BadKnob("tm", knobs.tm, Concat("at most bm, ", knobs.bm));
  if (knobs.tn > knobs.bn) return BadKnob("tn", knobs.tn, Concat("at most bn, ", knobs.bn));
  const int64_t threads = knobs.bm / knobs.tm * (knobs.bn / knobs.tn);
  if (threads > target.max_threads_per_block) {
    return absl::InvalidArgumentError(Concat("\"bm\", \"bn\", \"tm\" and \"tn\" need ", threads,
                                             " threads, at most ", target.max_threads_per_block,
                                             " are there"));
  }
  if (knobs.tm * knobs.tn > kMaxSums) {
    return absl::InvalidArgumentError(Concat("\"tm\" and \"tn\" give a thread ",
                                             knobs.tm * knobs.tn, " sums, at most ", kMaxSums));
  }
  const int64_t fetched = (knobs.bm + knobs.bn) * knobs.bk / threads;
  if (fetched > kMaxFetched) {
    return absl::InvalidArgumentError(Concat("\"bm\", \"bn\" and \"bk\" let a thread fetch ",
                                             fetched, " elements at a time, at most ",
                                             kMaxFetched));
  }
  const int64_t bytes = knobs.bk * (knobs.bm + knobs.bn + 2 * kPadding) *
                        std::max<int64_t>(SizeOf(FindContraction(view)->types[0].data_type), 4);
  if (bytes > target.static_shared_bytes()) {
    return absl::InvalidArgumentError(Concat("\"bm\", \"bn\" and \"bk\" need ", bytes,
                                             " bytes of shared memory, at most ",
                                             target.static_shared_bytes(), " are there"));
  }
  return absl::OkStatus();
}

absl::Status CheckKnobs(const ContractionKnobs& knobs, const GroupView& view,
                        const EmitTarget& target) {
  if (knobs.block > target.max_threads_per_block) {
    return BadKnob("block", knobs.block, Concat("at most ", target.max_threads_per_block));
  }
  return knobs.tiled != 0 && !target.is_cpu() ? CheckTile(knobs, view, target) : absl::OkStatus();
}

std::function<absl::Status(const ContractionKnobs&)> LegalityOf(const GroupView& view,
                                                                const EmitTarget& target) {
  return [&](const ContractionKnobs& knobs) { return CheckKnobs(knobs, view, target); };
}

// Sums in vector registers: 16 of them leave room for the factors.
std::vector<Table::Step> RegisterSteps(const ContractionKnobs& now, const GroupView& view) {
  std::vector<Table::Step> steps;
  if (!HasRegisterForm(view)) return steps;
  for (const auto& [rows, columns] : {std::pair{4, 4}, {4, 2}, {2, 4}, {6, 2}}) {
    Table::Step step{.text = Concat("to ", rows, "x", columns, " sums in vector registers"),
                     .knobs = now};
    step.knobs.tiled = 1;
    step.knobs.tr = rows;
    step.knobs.tc = columns;
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<Table::Step> StepsFrom(const ContractionKnobs& now, const GroupView& view,
                                   const EmitTarget& target) {
  if (target.is_cpu()) return RegisterSteps(now, view);
  const ContractionSpace space = SpaceOf(*FindContraction(view));
  std::vector<Table::Step> steps;
  for (const Tile& tile : kTiles) {
    // Blocks twice as large as the matrix waste half of their work.
    const bool fits = tile.bm < 2 * std::max<int64_t>(space.m, 32) &&
                      tile.bn < 2 * std::max<int64_t>(space.n, 32);
    if (!fits) continue;
    ContractionKnobs knobs = now;
    knobs.tiled = 1;
    knobs.bm = tile.bm;
    knobs.bn = tile.bn;
    knobs.bk = tile.bk;
    knobs.tm = tile.tm;
    knobs.tn = tile.tn;
    steps.push_back({.text = Concat("to ", tile.bm, "x", tile.bn, " blocks with ", tile.tm, "x",
                                    tile.tn, " micro-tiles"),
                     .knobs = knobs});
  }
  return steps;
}

// The knobs of the form that is not printed would sweep nothing.
std::vector<int64_t> SweptBlocks(const ContractionKnobs& now, const EmitTarget&) {
  return now.tiled != 0 ? std::vector<int64_t>{} : std::vector<int64_t>{64, 128, 256, 512};
}

std::vector<int64_t> SweptSides(const ContractionKnobs& now, const EmitTarget& target) {
  return now.tiled == 0 || target.is_cpu() ? std::vector<int64_t>{} : std::vector<int64_t>{64, 128};
}

std::vector<int64_t> SweptDepths(const ContractionKnobs& now, const EmitTarget& target) {
  return now.tiled == 0 || target.is_cpu() ? std::vector<int64_t>{}
                                           : std::vector<int64_t>{8, 16, 32};
}

}  // namespace

const TypedKnobTable<ContractionKnobs>& ContractionKnobTable() {
  constexpr KnobDomain kSide = {.least = 16, .most = 256, .is_power_of_two = true};
  constexpr KnobDomain kMicro = {.least = 4, .most = 16, .is_power_of_two = true};
  using Row = ContractionKnobs;
  static const auto* const table = new Table(
      {.rows = {{{"tiled", "tile", {.least = 0, .most = 1}}, &Row::tiled},
                {{"block", "tile", {.least = 1, .most = 65536}}, &Row::block, SweptBlocks},
                {{"bm", "tile", kSide}, &Row::bm, SweptSides},
                {{"bn", "tile", kSide}, &Row::bn, SweptSides},
                {{"bk", "tile", {.least = 8, .most = 64, .is_power_of_two = true}},
                 &Row::bk,
                 SweptDepths},
                {{"tm", "tile", kMicro}, &Row::tm},
                {{"tn", "tile", kMicro}, &Row::tn},
                {{"tr", "tile", {.least = 1, .most = 16}}, &Row::tr},
                {{"tc", "tile", {.least = 1, .most = 16}}, &Row::tc}},
       .defaults = DefaultsOf,
       .legality = LegalityOf,
       .steps = StepsFrom});
  return *table;
}

Knobs StartingContractionKnobs(const GroupView& view, const EmitTarget& target) {
  StartingSteps steps(view, target, ContractionKnobTable());
  const std::vector<KnobMove> tiles = steps.Moves("tile");
  const ContractionSpace space = SpaceOf(*FindContraction(view));
  const auto blocks = [&space](const KnobMove& tile) {
    return space.batch * CeilDiv(space.m, tile.knobs.find("bm")->second) *
           CeilDiv(space.n, tile.knobs.find("bn")->second);
  };
  auto chosen = std::find_if(tiles.begin(), tiles.end(), [&](const KnobMove& tile) {
    return target.is_cpu() || blocks(tile) >= target.compute_units;
  });
  if (chosen == tiles.end()) {
    // Too small a product for that: as many blocks as there can be.
    chosen = std::max_element(
        tiles.begin(), tiles.end(),
        [&](const KnobMove& a, const KnobMove& b) { return blocks(a) < blocks(b); });
  }
  if (chosen != tiles.end()) steps.Take(*chosen);
  return steps.knobs();
}

}  // namespace mtmc::kernel
