// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "policy/rules/op_kind.h"
#include "policy/rules/search_state.h"

namespace mtmc::policy {

// What keeps the program from being faster.
enum class Limit { kMemory, kCompute, kLatency };

// What the rules read off the region of one action. A value.
struct RegionFacts {
  int contractions = 0;
  int reductions = 0;
  int windows = 0;
  int pointwise = 0;
  // Bytes of values that the program keeps in memory, that one op of the region
  // makes and another one reads: what joining them in one kernel saves, read and
  // write together.
  double joined_bytes = 0;
  // Part of the device time spent in the region's kernels, 0 to 1. An even
  // share of all kernels when nothing was profiled.
  double share_ratio = 0;
  // Blocks in the grid of the region's longest kernel; 0 if unknown.
  int64_t blocks = 0;
  // Counters of that kernel; null where there are none.
  const profile::Values* metrics = nullptr;

  // A counter of that kernel, or `fallback`.
  double Metric(std::string_view name, double fallback) const;
};

// What the rules read off a search state, derived once per query. Refers to
// the state, which must outlive it. Immutable, so thread-safe.
class Facts {
 public:
  explicit Facts(const SearchState& search_state);

  const SearchState& search_state() const { return search_state_; }

  // The profile's word if it has one, else the roofline estimate below.
  Limit limit() const { return limit_; }

  // Shortest time that the memory and arithmetic rates of the device allow;
  // absent when a rate is unknown.
  std::optional<double> ideal_seconds() const { return ideal_seconds_; }

  // Best possible time over measured time, 0 to 1: the profile's number, else
  // `ideal_seconds` over the median; absent when neither is known.
  std::optional<double> speed_of_light_ratio() const { return speed_of_light_ratio_; }

  // Launches plus library calls of the plan.
  int dispatches() const { return dispatches_; }

  // Mean time of one dispatch; absent without a measurement.
  std::optional<double> seconds_per_dispatch() const;

  // Whether a contraction already runs as a library call.
  bool has_library_contraction() const { return has_library_contraction_; }

  // Share of arithmetic: true when the products alone take longer, at the rate
  // the precision class allows, than moving the minimum of bytes.
  bool is_contraction_bound() const { return is_contraction_bound_; }

  // Rate of products that the precision class certainly allows.
  double contraction_rate() const { return contraction_rate_; }

  // Bytes that the program moves for intermediates, each written and read once.
  double intermediate_bytes() const { return intermediate_bytes_; }

  RegionFacts Describe(const Action& action) const;

 private:
  void ReadPlan();
  // Whether the program keeps the op's result in a buffer. Buffers have the names
  // of graph values; without a plan, everything but views is taken to be kept.
  bool IsInMemory(const GraphOp& op) const;
  void EstimateRoofline();

  // All launches of one kernel.
  struct Timed {
    double share_ratio = 0;
    const KernelTime* longest = nullptr;
  };

  // The kernels of the action's region that were profiled, by name, so that a search that goes on
  // elsewhere adds them in the same order. A split group has several: GROUP_pieces, GROUP_total
  // and GROUP_2.
  std::map<std::string_view, const Timed*> TimedOf(const Action& action) const;
  double ShareOf(const Action& action) const;
  // The region's longest; null when none was profiled.
  const KernelTime* FindLongest(const Action& action) const;

  const SearchState& search_state_;
  // By name. Networks have thousands of kernels, and as many actions.
  std::map<std::string, Timed> timed_;
  std::map<std::string, const GraphOp*> op_by_name_;
  std::map<std::string, const GraphOp*> op_by_result_;
  // Names in the plan's `buffer` directives.
  std::set<std::string> buffers_;
  Limit limit_ = Limit::kMemory;
  std::optional<double> ideal_seconds_;
  std::optional<double> speed_of_light_ratio_;
  double contraction_rate_ = 0;
  int dispatches_ = 0;
  bool has_library_contraction_ = false;
  bool is_contraction_bound_ = false;
  double intermediate_bytes_ = 0;
};

}  // namespace mtmc::policy
