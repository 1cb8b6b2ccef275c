// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/facts.h"

#include <algorithm>
#include <set>
#include <string_view>

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

bool Facts::IsInside(const Action& action, const KernelTime& time) const {
  const auto& kernels = search_state_.evaluation.kernels;
  return std::any_of(action.kernels.begin(), action.kernels.end(), [&](const std::string& group) {
    if (time.kernel == group || time.kernel == group + "_pieces") return true;
    // `mul_2` is a group of its own unless `mul` is split.
    const bool is_split = std::any_of(kernels.begin(), kernels.end(), [&](const KernelTime& other) {
      return other.kernel == group + "_total";
    });
    return is_split && (time.kernel == group + "_total" || time.kernel == group + "_2");
  });
}

double Facts::ShareOf(const Action& action) const {
  const std::vector<KernelTime>& times = search_state_.evaluation.kernels;
  const double kernels = std::max<double>(1.0, static_cast<double>(action.kernels.size()));
  if (times.empty()) return std::min(1.0, kernels / std::max(1, dispatches_));
  double share = 0;
  for (const KernelTime& time : times) {
    if (IsInside(action, time) && time.share_ratio > 0) share += time.share_ratio;
  }
  return std::clamp(share, 0.0, 1.0);
}

const KernelTime* Facts::FindLongest(const Action& action) const {
  const KernelTime* longest = nullptr;
  for (const KernelTime& time : search_state_.evaluation.kernels) {
    if (IsInside(action, time) && (longest == nullptr || time.seconds > longest->seconds))
      longest = &time;
  }
  return longest;
}

}  // namespace mtmc::policy
