// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/rule_table.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

namespace mtmc::policy {
namespace {

// Turns opinions into a distribution: a lead of one is a factor of 20, so that
// dozens of mediocre actions together do not outweigh one good one.
constexpr double kSharpness = 3.0;

// A veto outweighs the sum of all favourable opinions, which is about 8.
constexpr double kVeto = -16.0;

// Above this part of the speed of light there is less to win than a re-run
// differs from the last one.
constexpr double kNearSpeedOfLight = 0.9;

std::string ArgumentOf(const Action& action, const std::string& name) {
  const auto found = action.arguments.find(name);
  return found == action.arguments.end() ? std::string() : found->second;
}

bool IsRepair(ActionType type) {
  return type == ActionType::kFixBuild || type == ActionType::kFixLaunch ||
         type == ActionType::kFixResult;
}

// Part of a whole, 0 to 1; 0 when there is no whole.
double PartOf(double part, double whole) { return whole <= 0 ? 0.0 : std::min(1.0, part / whole); }

// At the roofline every action but `stop` is a risk without a prize; unless the
// baseline is still faster, which shows that there is one.
double NearSpeedOfLight(const Facts& facts, const Action& action, const RegionFacts&) {
  const double ratio = facts.speed_of_light_ratio().value_or(0.0);
  if (ratio < kNearSpeedOfLight) return 0;
  if (facts.search_state().evaluation.speedup.value_or(1.0) < 1.0) return 0;
  // That is the speed of light of other arithmetic.
  if (action.type == ActionType::kTensorize) return 0;
  return action.type == ActionType::kStop ? 3.0 : -4.0;
}

// A failed program is repaired, and a working one is not.
double RepairFirst(const Facts& facts, const Action& action, const RegionFacts&) {
  const std::optional<ActionType> repair = facts.search_state().evaluation.repair;
  if (!repair) return IsRepair(action.type) ? kVeto : 0.0;
  if (action.type == *repair) return 5.0;
  return action.type == ActionType::kStop ? 0.0 : -4.0;
}

// A coder that offers several repairs lists them by how much they are likely to
// keep of what the program was meant to be.
double RepairInOrder(const Facts&, const Action& action, const RegionFacts&) {
  return IsRepair(action.type) ? -std::atof(ArgumentOf(action, "rank").c_str()) : 0.0;
}

// The engine and the device are deterministic: what failed fails again.
double NeverRepeatFailure(const Facts& facts, const Action& action, const RegionFacts&) {
  double opinion = 0;
  for (const Step& step : facts.search_state().history) {
    if (action.text.empty() || step.action != action.text) continue;
    const bool is_bad = step.outcome != "faster" && step.outcome != "same";
    opinion = std::min(opinion, is_bad ? kVeto : -3.0);
  }
  return opinion;
}

// Joining operations keeps their intermediates out of memory: the traffic that
// is saved, of all that could be, is the prize.
double FuseSavesTraffic(const Facts& facts, const Action& action, const RegionFacts& region) {
  if (action.type != ActionType::kFuse) return 0;
  return 1.0 + 2.0 * PartOf(region.joined_bytes, facts.intermediate_bytes());
}

// A chain of pointwise operations fuses without any loss of parallelism, so it
// comes before every fusion that has a price.
double FusePointwiseChain(const Facts&, const Action& action, const RegionFacts& region) {
  const bool is_chain = region.pointwise >= 2 && region.contractions == 0;
  return action.type == ActionType::kFuse && is_chain ? 0.75 : 0.0;
}

// Reductions over one input join into one sweep (softmax, norms), which halves
// or thirds the reads.
double FuseReductions(const Facts&, const Action& action, const RegionFacts& region) {
  const bool is_joined = region.reductions >= 1 && region.contractions == 0;
  return action.type == ActionType::kFuse && is_joined ? 0.5 : 0.0;
}

// An epilogue is free inside our own contraction kernel, but to fuse it there
// gives up the library, which a heavy contraction does better than we do.
double FuseEpilogue(const Facts& facts, const Action& action, const RegionFacts& region) {
  if (action.type != ActionType::kFuse || region.contractions == 0) return 0;
  const bool library_is_better =
      facts.search_state().device.has_library_calls && facts.is_contraction_bound();
  if (library_is_better) return facts.has_library_contraction() ? -2.5 : -2.0;
  return 1.0;
}

// Below this part of the baseline's speed a program is behind it, whatever the noise.
constexpr double kBehind = 0.97;

// A heavy contraction belongs to the vendor's library before anything else: the
// naive kernel is orders of magnitude slower, so it hides every other effect.
double LibraryCall(const Facts& facts, const Action& action, const RegionFacts& region) {
  if (action.type != ActionType::kLibrary) return 0;
  if (region.contractions > 0) return facts.is_contraction_bound() ? 4.5 : 3.0;
  if (region.windows > 0) return 0.5;
  // A library call of a pointwise or reduction op is what the baseline does, which is worth
  // having only where that is faster.
  const bool is_behind = facts.search_state().evaluation.speedup.value_or(1.0) < kBehind;
  return is_behind ? 1.0 + 2.5 * region.share_ratio : -2.0;
}

// Tensor cores in TF32 are several times faster than FP32. The class decides
// whether their error is allowed; KernelBench's tolerance allows it for
// convolutions, whose eager default is TF32 already, and seldom for products.
double PrecisionTier(const Facts& facts, const Action& action, const RegionFacts&) {
  const std::string tier = ArgumentOf(action, "precision");
  if (tier.empty()) return 0;
  const PrecisionClass precision = facts.search_state().precision;
  if (tier == "default" || tier == "exact") return 0.25;
  // For what the vendor's own choice makes wrong.
  if (tier == "ieee") return -1.0;
  const bool is_half = tier == "bf16" || tier == "fp16" || tier == "half";
  if (is_half) return precision == PrecisionClass::kHalf ? 1.5 : -6.0;
  // As exact as a sum in FP32 nearly is, and twice as fast where products are the limit.
  if (tier == "tf32x3") {
    // For what longer sums make wrong.
    const double shortness = ArgumentOf(action, "sums") == "short" ? -0.5 : 0.0;
    return shortness + (facts.is_contraction_bound() ? 4.5 : 1.0);
  }
  if (tier != "tf32") return 0;
  switch (precision) {
    case PrecisionClass::kHalf:
    case PrecisionClass::kTf32:
      return 1.25;
    case PrecisionClass::kStrict:
      return -6.0;
    case PrecisionClass::kKernelBench:
      break;
  }
  const bool is_convolution =
      std::any_of(action.nodes.begin(), action.nodes.end(), [&](const std::string& node) {
        const auto& ops = facts.search_state().ops;
        const auto op = std::find_if(ops.begin(), ops.end(), [&](const GraphOp& candidate) {
          return candidate.name == node;
        });
        return op != ops.end() && op->op.find("conv") != std::string::npos;
      });
  return is_convolution ? 0.75 : -1.5;
}

// Our own contraction without blocking reads each element as often as it is
// used; tiles in shared memory and registers remove that factor. In place of a
// vendor's call (argument `own`) they seldom win where arithmetic is the limit.
double TileContractions(const Facts& facts, const Action& action, const RegionFacts& region) {
  const bool applies = action.type == ActionType::kTile && region.contractions > 0;
  if (!applies) return 0;
  const bool replaces_call = !ArgumentOf(action, "own").empty();
  if (replaces_call && facts.is_contraction_bound()) return -2.0;
  return 1.0 + 2.5 * region.share_ratio;
}

// A reduction needs enough rows in flight and enough threads in a row.
double TileReductions(const Facts&, const Action& action, const RegionFacts& region) {
  const bool applies = action.type == ActionType::kTile && region.contractions == 0;
  if (!applies) return 0;
  return region.reductions > 0 ? 0.5 + 2.0 * region.share_ratio : 0.25 + region.share_ratio;
}

// Wide accesses pay where memory is the limit, in proportion to the kernel's
// share of the time.
double VectorizeMemoryBound(const Facts& facts, const Action& action, const RegionFacts& region) {
  if (action.type != ActionType::kVectorize) return 0;
  const double prize = facts.limit() == Limit::kMemory ? 2.0 : 0.75;
  return 0.25 + prize * region.share_ratio;
}

// Sixteen bytes are the widest access of a CUDA thread: four floats need half
// the instructions of two, eight need two accesses and more registers.
double WidestAccess(const Facts& facts, const Action& action, const RegionFacts&) {
  if (action.type != ActionType::kVectorize || !facts.search_state().device.is_cuda) return 0;
  const std::string elements = ArgumentOf(action, "vector");
  if (elements == "4") return 0.5;
  return elements == "1" ? -1.0 : 0.0;
}

bool HasTried(const Facts& facts, std::string_view type) {
  const auto& history = facts.search_state().history;
  return std::any_of(history.begin(), history.end(),
                     [&](const Step& step) { return step.action.starts_with(type); });
}

// Layout and loop order matter for neighbourhoods and strided sweeps.
double ReorderWindows(const Facts&, const Action& action, const RegionFacts& region) {
  if (action.type != ActionType::kReorder) return 0;
  return region.windows > 0 ? 1.0 + region.share_ratio : 0.25 + region.share_ratio;
}

// Splitting the reduction fills a device that a single block per output leaves
// empty: with fewer blocks than multiprocessors some have nothing to do, and
// memory needs several blocks on each. Copying ahead hides latency once a
// contraction is tiled.
double FillTheDevice(const Facts& facts, const Action& action, const RegionFacts& region) {
  if (action.type == ActionType::kSplit) {
    const int64_t units = facts.search_state().device.compute_units;
    const bool is_empty = region.blocks > 0 && region.blocks < 2 * units;
    if (is_empty && facts.search_state().device.is_cuda) {
      const int64_t pieces = std::atoll(ArgumentOf(action, "split").c_str());
      const bool fills = region.blocks * pieces >= 4 * units;
      return 1.0 + 3.0 * region.share_ratio + (fills ? 1.0 : 0.0);
    }
    return facts.limit() == Limit::kLatency ? 1.0 + region.share_ratio : 0.5 * region.share_ratio;
  }
  if (action.type == ActionType::kPipeline) {
    return region.contractions > 0 ? 0.5 + region.share_ratio : -0.5;
  }
  if (action.type == ActionType::kTensorize) return 0.5 + 2.0 * region.share_ratio;
  return 0;
}

// Work that algebra removes is faster than any kernel; all of it at once takes one
// trial.
double SimplifyFirst(const Facts&, const Action& action, const RegionFacts&) {
  if (action.type != ActionType::kSimplify) return 0;
  const std::string rewrites = ArgumentOf(action, "rewrites");
  const bool is_all = rewrites.find(',') != std::string::npos;
  return is_all ? 5.0 : 4.0;
}

// Convolutions on tensor cores read their channels next to each other; without that a vendor's
// library turns every tensor around, each time. Products in FP32 throughout are for those that
// the default made wrong.
double ChannelsLast(const Facts& facts, const Action& action, const RegionFacts& region) {
  if (action.type != ActionType::kReorder || !facts.search_state().device.is_cuda) return 0;
  const std::string rewrites = ArgumentOf(action, "rewrites");
  if (rewrites.find("channels_last") == std::string::npos) return 0;
  const double exactness = ArgumentOf(action, "precision") == "ieee" ? -1.0 : 0.0;
  const bool is_all = rewrites.find(',') != std::string::npos;
  return exactness + (is_all ? 3.5 : 1.0 + 2.5 * region.share_ratio);
}

// Loads of four floats for each thread of a warp touch 16 sectors, of one float 4,
// and scattered ones up to 32.
constexpr double kWideSectors = 15.0;
constexpr double kNarrowSectors = 5.0;
constexpr double kScatteredSectors = 20.0;

// At this part of its peak a part of the device is the limit.
constexpr double kBusy = 0.6;

// Memory: narrow loads can be widened, wide ones cannot, scattered ones want
// another order, and memory that is at its peak wants fewer bytes, not other
// accesses.
double CountersOfMemory(const Facts&, const Action& action, const RegionFacts& region) {
  if (region.metrics == nullptr) return 0;
  const double sectors = region.Metric("load_sectors_per_request", kNarrowSectors);
  const bool is_saturated = region.Metric("dram_throughput_ratio", 0) > 0.85;
  const bool is_scattered =
      sectors > kScatteredSectors || region.Metric("load_used_ratio", 1) < 0.5;
  switch (action.type) {
    case ActionType::kVectorize:
      if (is_saturated || (sectors > kWideSectors && !is_scattered)) return -region.share_ratio;
      return sectors < kNarrowSectors ? 0.5 * region.share_ratio : 0.0;
    case ActionType::kReorder:
      return is_scattered ? 1.5 * region.share_ratio : 0.0;
    case ActionType::kTile:
      return is_scattered ? region.share_ratio : 0.0;
    default:
      return 0;
  }
}

// Arithmetic and latency: idle multiprocessors want more blocks, waiting warps
// want copies ahead, a busy FP32 pipe wants tensor cores, spills and conflicts
// want other tiles.
double CountersOfCompute(const Facts&, const Action& action, const RegionFacts& region) {
  if (region.metrics == nullptr) return 0;
  const double share = region.share_ratio;
  switch (action.type) {
    case ActionType::kSplit:
      return region.Metric("sm_active_ratio", 1) < kBusy ? share : 0.0;
    case ActionType::kPipeline: {
      const bool waits = region.Metric("stall_long_scoreboard_ratio", 0) > 0.4;
      const bool is_free = region.Metric("dram_throughput_ratio", 0) < kBusy;
      return waits && is_free ? share : 0.0;
    }
    case ActionType::kTensorize:
      return region.Metric("fma_pipe_ratio", 0) > kBusy ? share : 0.0;
    case ActionType::kTile:
    case ActionType::kTune: {
      const double spilled = region.Metric("local_bytes", 0);
      const bool spills = spilled > 0.05 * region.Metric("dram_bytes", 0) && spilled > 0;
      const bool conflicts = region.Metric("shared_conflict_ratio", 0) > 0.25;
      return (spills ? 0.75 * share : 0.0) + (conflicts ? 0.5 * share : 0.0);
    }
    default:
      return 0;
  }
}

// A captured graph removes the launch gaps: many or short dispatches gain, one
// long kernel does not. It also freezes the plan, so structure comes first.
double CaptureShortKernels(const Facts& facts, const Action& action, const RegionFacts&) {
  if (action.type != ActionType::kCapture) return 0;
  if (!facts.search_state().device.is_cuda) return -2.0;
  const double seconds = facts.seconds_per_dispatch().value_or(20e-6);
  double opinion = seconds < 20e-6 ? 3.0 : (seconds < 200e-6 ? 1.5 : 0.25);
  if (facts.dispatches() >= 3) opinion += 0.5;
  if (facts.search_state().remaining_steps <= 2) opinion += 1.0;
  return opinion;
}

// A sweep tries in one step what single moves try in many, but a later fusion
// throws it away: it waits until little is left in memory to be fused, or until
// the steps run out.
double TuneLate(const Facts& facts, const Action& action, const RegionFacts& region) {
  if (action.type != ActionType::kTune) return 0;
  const double unsettled =
      PartOf(facts.intermediate_bytes(),
             facts.intermediate_bytes() + static_cast<double>(facts.search_state().minimum_bytes));
  const double late = facts.search_state().remaining_steps <= 2 ? 1.0 : 0.0;
  const double searches_tiles = region.contractions > 0 ? 0.5 : 0.0;
  // A sweep over narrow accesses is thrown away by the step that widens them.
  const bool is_narrow =
      region.contractions == 0 && facts.limit() == Limit::kMemory && !HasTried(facts, "vectorize");
  return 1.25 + 2.0 * region.share_ratio + searches_tiles + late - 1.5 * unsettled -
         (is_narrow ? 1.0 : 0.0);
}

// When earlier steps stopped helping, the next ones seldom do.
double PatienceRunsOut(const Facts& facts, const Action& action, const RegionFacts&) {
  if (action.type == ActionType::kStop) return 0;
  int useless = 0;
  const auto& history = facts.search_state().history;
  for (auto step = history.rbegin(); step != history.rend() && step->outcome != "faster"; ++step) {
    ++useless;
  }
  return -0.5 * std::max(0, useless - 1);
}

constexpr auto kRules = std::to_array<Rule>({
    {"near_speed_of_light", "at the roofline every change is a risk without a prize",
     NearSpeedOfLight},
    {"repair_first", "a failed program is repaired before it is optimized", RepairFirst},
    {"repair_in_order", "of several repairs the one that changes least", RepairInOrder},
    {"never_repeat_failure", "what failed or was slower will be so again", NeverRepeatFailure},
    {"fuse_saves_traffic", "a joined intermediate is neither written nor read", FuseSavesTraffic},
    {"fuse_pointwise_chain", "a pointwise chain fuses without a price", FusePointwiseChain},
    {"fuse_reductions", "reductions over one input join into one sweep", FuseReductions},
    {"fuse_epilogue", "an epilogue is free in our own contraction but gives up the library",
     FuseEpilogue},
    {"library_call", "the vendor's contraction beats ours; elsewhere it is what eager does",
     LibraryCall},
    {"precision_tier", "TF32 where the precision class allows its error", PrecisionTier},
    {"tile_contractions", "blocking removes the reuse factor from memory traffic",
     TileContractions},
    {"tile_reductions", "rows in flight and threads in a row must fit the device", TileReductions},
    {"vectorize_memory_bound", "wide accesses pay where memory is the limit", VectorizeMemoryBound},
    {"widest_access", "sixteen bytes are what a CUDA thread moves best", WidestAccess},
    {"reorder_windows", "layout decides how often a neighbourhood is read", ReorderWindows},
    {"fill_the_device", "split, pipeline and tensorize where the device is not full",
     FillTheDevice},
    {"counters_of_memory", "how loads fall decides what widening or reordering can win",
     CountersOfMemory},
    {"counters_of_compute", "idle units, waiting warps, spills and conflicts name their remedy",
     CountersOfCompute},
    {"simplify_first", "removed work beats fast work", SimplifyFirst},
    {"channels_last", "tensor cores read channels next to each other", ChannelsLast},
    {"capture_short_kernels", "a captured graph removes launch gaps", CaptureShortKernels},
    {"tune_late", "a sweep replaces many moves, once the structure is settled", TuneLate},
    {"patience_runs_out", "after steps without gain the next ones seldom gain", PatienceRunsOut},
});

}  // namespace

std::span<const Rule> RuleTable() { return kRules; }

double ScoreByRules(const Facts& facts, const Action& action) {
  const RegionFacts region = facts.Describe(action);
  double score = 0;
  for (const Rule& rule : kRules) score += rule.function(facts, action, region);
  return kSharpness * score;
}

}  // namespace mtmc::policy
