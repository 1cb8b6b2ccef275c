// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/facts.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace mtmc::policy {
namespace {

// A dispatch shorter than this is dominated by its launch: a launch costs 2 to
// 5 us on a GPU, so at 10 us up to half of the time is not work.
constexpr double kShortDispatchSeconds = 10e-6;

// Calls `visit` with every directive line of the program, without `//@ `.
template <typename Visitor>
void ForEachDirective(std::string_view program, Visitor visit) {
  while (!program.empty()) {
    const size_t end = program.find('\n');
    std::string_view line = program.substr(0, end);
    program = end == program.npos ? std::string_view() : program.substr(end + 1);
    constexpr std::string_view kMark = "//@";
    if (!line.starts_with(kMark)) continue;
    line.remove_prefix(kMark.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    visit(line);
  }
}

}  // namespace

double RegionFacts::Metric(std::string_view name, double fallback) const {
  if (metrics == nullptr) return fallback;
  const auto found = metrics->find(name);
  return found == metrics->end() ? fallback : found->second;
}

Facts::Facts(const SearchState& search_state) : search_state_(search_state) {
  ReadPlan();
  for (const KernelTime& time : search_state_.evaluation.kernels) {
    Timed& timed = timed_[time.kernel];
    timed.share_ratio += std::max(time.share_ratio, 0.0);
    const bool is_longer = timed.longest == nullptr || time.seconds > timed.longest->seconds;
    if (is_longer) timed.longest = &time;
  }
  std::set<std::string> read_values;
  for (const GraphOp& op : search_state_.ops) {
    op_by_name_[op.name] = &op;
    for (const std::string& result : op.results) op_by_result_[result] = &op;
    read_values.insert(op.operands.begin(), op.operands.end());
  }
  for (const GraphOp& op : search_state_.ops) {
    const bool is_read = std::any_of(op.results.begin(), op.results.end(),
                                     [&](const auto& name) { return read_values.contains(name); });
    if (is_read && IsInMemory(op)) {
      intermediate_bytes_ += 2.0 * static_cast<double>(op.result_bytes);
    }
  }
  EstimateRoofline();
}

bool Facts::IsInMemory(const GraphOp& op) const {
  if (dispatches_ == 0) return ClassifyOp(op.op) != OpKind::kMovement;
  return std::any_of(op.results.begin(), op.results.end(),
                     [&](const auto& name) { return buffers_.contains(name); });
}

void Facts::ReadPlan() {
  ForEachDirective(search_state_.program, [this](std::string_view directive) {
    if (directive.starts_with("buffer ")) {
      directive.remove_prefix(7);
      directive.remove_prefix(std::min(directive.find_first_not_of(' '), directive.size()));
      buffers_.emplace(directive.substr(0, directive.find_first_of(" \t")));
    }
    if (directive.starts_with("launch ")) ++dispatches_;
    if (!directive.starts_with("call ")) return;
    ++dispatches_;
    directive.remove_prefix(5);
    const std::string_view op = directive.substr(0, directive.find('('));
    has_library_contraction_ |= ClassifyOp(op) == OpKind::kContraction;
  });
}

void Facts::EstimateRoofline() {
  const DeviceRates& device = search_state_.device;
  const EvaluationSummary& evaluation = search_state_.evaluation;
  const bool allows_tf32 = search_state_.precision == PrecisionClass::kTf32 ||
                           search_state_.precision == PrecisionClass::kHalf;
  contraction_rate_ = allows_tf32
                          ? std::max(device.tf32_flops_per_second, device.fp32_flops_per_second)
                          : device.fp32_flops_per_second;
  double memory_seconds = 0;
  double compute_seconds = 0;
  if (device.bytes_per_second > 0) {
    memory_seconds = static_cast<double>(search_state_.minimum_bytes) / device.bytes_per_second;
  }
  if (contraction_rate_ > 0) {
    compute_seconds = static_cast<double>(search_state_.contraction_flops) / contraction_rate_;
  }
  is_contraction_bound_ = search_state_.contraction_flops > 0 && compute_seconds >= memory_seconds;
  if (const double ideal = std::max(memory_seconds, compute_seconds); ideal > 0) {
    ideal_seconds_ = ideal;
  }

  if (evaluation.speed_of_light_ratio) {
    speed_of_light_ratio_ = evaluation.speed_of_light_ratio;
  } else if (ideal_seconds_ && evaluation.median_seconds && *evaluation.median_seconds > 0) {
    speed_of_light_ratio_ = std::min(1.0, *ideal_seconds_ / *evaluation.median_seconds);
  }

  if (evaluation.limit == "memory") {
    limit_ = Limit::kMemory;
  } else if (evaluation.limit == "compute") {
    limit_ = Limit::kCompute;
  } else if (evaluation.limit == "latency") {
    limit_ = Limit::kLatency;
  } else if (seconds_per_dispatch().value_or(1.0) < kShortDispatchSeconds) {
    limit_ = Limit::kLatency;
  } else {
    limit_ = is_contraction_bound_ ? Limit::kCompute : Limit::kMemory;
  }
}

std::optional<double> Facts::seconds_per_dispatch() const {
  const std::optional<double> median = search_state_.evaluation.median_seconds;
  if (!median || dispatches_ == 0) return std::nullopt;
  return *median / dispatches_;
}

RegionFacts Facts::Describe(const Action& action) const {
  RegionFacts facts;
  std::set<std::string> made_inside;
  for (const std::string& name : action.nodes) {
    const auto found = op_by_name_.find(name);
    if (found == op_by_name_.end()) continue;
    const GraphOp& op = *found->second;
    switch (ClassifyOp(op.op)) {
      case OpKind::kContraction:
        ++facts.contractions;
        break;
      case OpKind::kReduction:
        ++facts.reductions;
        break;
      case OpKind::kWindow:
        ++facts.windows;
        break;
      case OpKind::kPointwise:
        ++facts.pointwise;
        break;
      case OpKind::kMovement:
        break;
    }
    made_inside.insert(op.results.begin(), op.results.end());
  }
  std::set<const GraphOp*> joined;
  for (const std::string& name : action.nodes) {
    const auto found = op_by_name_.find(name);
    if (found == op_by_name_.end()) continue;
    for (const std::string& operand : found->second->operands) {
      if (!made_inside.contains(operand)) continue;
      const GraphOp* maker = op_by_result_.at(operand);
      if (IsInMemory(*maker)) joined.insert(maker);
    }
  }
  for (const GraphOp* op : joined) {
    facts.joined_bytes += 2.0 * static_cast<double>(op->result_bytes);
  }
  facts.share_ratio = ShareOf(action);
  if (const KernelTime* longest = FindLongest(action)) {
    facts.blocks = longest->blocks;
    if (!longest->metrics.empty()) facts.metrics = &longest->metrics;
  }
  return facts;
}

std::map<std::string_view, const Facts::Timed*> Facts::TimedOf(const Action& action) const {
  std::map<std::string_view, const Timed*> inside;
  const auto add = [&](const std::string& name) {
    const auto found = timed_.find(name);
    if (found == timed_.end()) return false;
    inside.emplace(found->first, &found->second);
    return true;
  };
  for (const std::string& group : action.kernels) {
    add(group);
    add(group + "_pieces");
    // `mul_2` is a group of its own unless `mul` is split.
    if (add(group + "_total")) add(group + "_2");
  }
  return inside;
}

double Facts::ShareOf(const Action& action) const {
  const double kernels = std::max<double>(1.0, static_cast<double>(action.kernels.size()));
  if (timed_.empty()) return std::min(1.0, kernels / std::max(1, dispatches_));
  double share = 0;
  for (const auto& [name, timed] : TimedOf(action)) share += timed->share_ratio;
  return std::clamp(share, 0.0, 1.0);
}

const KernelTime* Facts::FindLongest(const Action& action) const {
  const KernelTime* longest = nullptr;
  for (const auto& [name, timed] : TimedOf(action)) {
    const KernelTime* other = timed->longest;
    // Of two that take as long the first of the profile, which has them in one array.
    const auto rank = [](const KernelTime* time) { return std::pair(-time->seconds, time); };
    if (longest == nullptr || rank(other) < rank(longest)) longest = other;
  }
  return longest;
}

}  // namespace mtmc::policy
