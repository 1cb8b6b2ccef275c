// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/knob_table.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

// Variants of one group that a schedule may ask for; each is a build.
constexpr size_t kMaxCombinations = 64;

// Calls `visit` with every combination of the swept values in place of those of
// `knobs`; ends at the first error.
absl::Status ForEachCombination(const KnobValues& tune, Knobs knobs,
                                const std::function<absl::Status(const Knobs&)>& visit) {
  size_t count = 1;
  for (const auto& [knob, values] : tune) count *= values.size();
  for (size_t i = 0; i < count; ++i) {
    size_t rest = i;
    for (const auto& [knob, values] : tune) {
      knobs[knob] = values[rest % values.size()];
      rest /= values.size();
    }
    MTMC_RETURN_IF_ERROR(visit(knobs));
  }
  return absl::OkStatus();
}

absl::Status CheckDomains(const std::vector<Knob>& rows, const Knobs& knobs) {
  for (const auto& [name, value] : knobs) {
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&name = name](const Knob& knob) { return knob.name == name; });
    if (row == rows.end()) {
      std::vector<std::string> names;
      for (const Knob& knob : rows) names.emplace_back(knob.name);
      return absl::InvalidArgumentError(
          names.empty() ? Concat("\"", name, "\" is no knob of this template, which has none")
                        : Concat("\"", name, "\" is no knob of this template, which has ",
                                 Join(names, ", ")));
    }
    if (!row->domain.Contains(value)) return BadKnob(name, value, row->domain.ToText());
  }
  return absl::OkStatus();
}

// The name of the action that leads from one set to the other.
std::string_view ActionOf(const std::vector<Knob>& rows, const Knobs& from, const Knobs& to) {
  for (const Knob& row : rows) {
    if (from.find(row.name)->second != to.find(row.name)->second) return row.action;
  }
  return "";
}

}  // namespace

absl::Status BadKnob(std::string_view knob, int64_t value, std::string_view allowed) {
  return absl::InvalidArgumentError(Concat("\"", knob, "\" is ", value, ", must be ", allowed));
}

bool KnobDomain::Contains(int64_t value) const {
  return value >= least && value <= most && (!is_power_of_two || (value & (value - 1)) == 0);
}

std::string KnobDomain::ToText() const {
  if (most == least + 1) return Concat(least, " or ", most);
  return Concat(is_power_of_two ? "a power of two from " : "", least, " to ", most);
}

std::vector<KnobMove> KnobTable::Moves(const GroupView& view, const EmitTarget& target) const {
  const std::vector<Knob> table = rows();
  const Knobs& now = view.group->knobs;
  const Predicate predicate = MakePredicate(view, target);
  std::vector<KnobMove> moves;
  for (Proposal& proposal : Propose(view, target)) {
    const std::string_view action = ActionOf(table, now, proposal.knobs);
    const bool is_legal =
        CheckDomains(table, proposal.knobs).ok() && predicate(proposal.knobs).ok();
    if (action.empty() || !is_legal) continue;
    moves.push_back({std::string(action), std::move(proposal.text), std::move(proposal.knobs)});
  }
  return moves;
}

std::vector<KnobSweep> KnobTable::Sweeps(const GroupView& view, const EmitTarget& target) const {
  const std::vector<Knob> table = rows();
  const Predicate predicate = MakePredicate(view, target);
  std::vector<KnobSweep> sweeps;
  KnobValues kept;
  for (const Knob& row : table) {
    const std::vector<int64_t> values = SweptValues(row.name, view, target);
    if (values.empty()) continue;
    const std::string name(row.name);
    const int64_t present = view.group->knobs.find(name)->second;
    KnobSweep sweep{.knob = name, .values = {present}};
    for (const int64_t value : values) {
      // Legal with everything that the knobs before may become.
      KnobValues with = kept;
      with[name] = {value};
      const bool is_legal =
          row.domain.Contains(value) && ForEachCombination(with, view.group->knobs, predicate).ok();
      if (value != present && is_legal) sweep.values.push_back(value);
    }
    kept[name] = sweep.values;
    sweeps.push_back(std::move(sweep));
  }
  return sweeps;
}

absl::Status KnobTable::Check(const GroupView& view, const EmitTarget& target,
                              const KnobValues& tune) const {
  const std::vector<Knob> table = rows();
  MTMC_RETURN_IF_ERROR(CheckDomains(table, view.group->knobs));
  Knobs knobs = view.group->knobs;
  for (const auto& [name, value] : Defaults(view, target)) knobs.emplace(name, value);
  size_t combinations = 1;
  for (const auto& [name, values] : tune) {
    if (!IsParameter(name)) {
      std::vector<std::string> names;
      for (const Knob& row : table) {
        if (IsParameter(row.name)) names.emplace_back(row.name);
      }
      return absl::InvalidArgumentError(
          Concat("\"", name, "\" cannot be swept, ",
                 names.empty() ? "nothing of this template can" : Join(names, ", ") + " can"));
    }
    combinations *= values.size();
    if (combinations > kMaxCombinations) {
      return absl::InvalidArgumentError(
          Concat("its tune lines give more than ", kMaxCombinations, " variants"));
    }
  }
  const Predicate predicate = MakePredicate(view, target);
  return ForEachCombination(tune, knobs, [&](const Knobs& variant) -> absl::Status {
    MTMC_RETURN_IF_ERROR(CheckDomains(table, variant));
    return predicate(variant);
  });
}

}  // namespace mtmc::kernel
