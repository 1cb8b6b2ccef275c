// SPDX-License-Identifier: Apache-2.0
#include "server/search/mix.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/search/group_times.h"

namespace mtmc::search {
namespace {

using kernel::KernelGroup;
using kernel::Schedule;

// A part must take less than this of the time that it takes now: below is noise
// of a single kernel.
constexpr double kPartRatio = 0.95;
// What the whole must promise, over the fastest program so far, to be worth a trial.
constexpr double kWholeRatio = 0.98;

// The least sets of nodes that both schedules cut out as whole groups, as groups
// of either.
struct Part {
  std::vector<size_t> ours;
  std::vector<size_t> theirs;
};

std::vector<Part> PartsOf(const Schedule& ours, const Schedule& theirs) {
  std::map<std::string, size_t> group_of;
  for (size_t g = 0; g < ours.groups.size(); ++g) {
    for (const std::string& node : ours.groups[g].nodes) group_of[node] = g;
  }
  // Union-find over our groups, joined by each of theirs that spans several.
  std::vector<size_t> root(ours.groups.size());
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&root](size_t g) {
    while (root[g] != g) g = root[g];
    return g;
  };
  for (const KernelGroup& group : theirs.groups) {
    for (const std::string& node : group.nodes) {
      if (!group_of.contains(node) || !group_of.contains(group.nodes[0])) return {};
      root[find(group_of[node])] = find(group_of[group.nodes[0]]);
    }
  }
  std::map<size_t, Part> parts;
  for (size_t g = 0; g < ours.groups.size(); ++g) parts[find(g)].ours.push_back(g);
  for (size_t g = 0; g < theirs.groups.size(); ++g) {
    parts[find(group_of[theirs.groups[g].nodes[0]])].theirs.push_back(g);
  }
  std::vector<Part> result;
  for (auto& [unused, part] : parts) result.push_back(std::move(part));
  return result;
}

double SecondsOf(const TimedSchedule& timed, const std::vector<size_t>& groups) {
  double seconds = 0;
  for (const size_t g : groups) seconds += timed.seconds[g];
  return seconds;
}

// A mix that grows by the better parts of one program after the other.
class Mixer {
 public:
  explicit Mixer(TimedSchedule base) : mix_(std::move(base)) {}

  const TimedSchedule& mix() const { return mix_; }

  int parts() const { return parts_; }

  void Take(const TimedSchedule& other) {
    std::set<size_t> dropped;
    std::vector<size_t> added;
    for (const Part& part : PartsOf(mix_.schedule, other.schedule)) {
      if (SecondsOf(other, part.theirs) >= kPartRatio * SecondsOf(mix_, part.ours)) continue;
      dropped.insert(part.ours.begin(), part.ours.end());
      added.insert(added.end(), part.theirs.begin(), part.theirs.end());
      ++parts_;
    }
    if (dropped.empty()) return;
    TimedSchedule next{.schedule = {.has_capture = mix_.schedule.has_capture}};
    for (size_t g = 0; g < mix_.seconds.size(); ++g) {
      if (!dropped.contains(g)) Append(mix_, g, next);
    }
    for (const size_t g : added) Append(other, g, next);
    mix_ = std::move(next);
  }

 private:
  // With the group's swept knobs, under a name that is free.
  static void Append(const TimedSchedule& from, size_t g, TimedSchedule& to) {
    KernelGroup group = from.schedule.groups[g];
    const std::string name = group.name;
    const auto is_taken = [&to](const std::string& text) {
      return std::any_of(to.schedule.groups.begin(), to.schedule.groups.end(),
                         [&text](const KernelGroup& other) { return other.name == text; });
    };
    for (int suffix = 2; is_taken(group.name); ++suffix) {
      group.name = absl::StrCat(name, "_", suffix);
    }
    for (auto& [knob, values] : from.schedule.TuneOf(name)) {
      to.schedule.tune[absl::StrCat(group.name, ".", knob)] = values;
    }
    to.schedule.groups.push_back(std::move(group));
    to.seconds.push_back(from.seconds[g]);
  }

  TimedSchedule mix_;
  int parts_ = 0;
};

// What a program computes in which kernels, whatever their order and names.
std::set<std::string> KernelsOf(const Schedule& schedule) {
  std::set<std::string> kernels;
  for (const KernelGroup& group : schedule.groups) {
    Schedule alone{.groups = {group}};
    for (auto& [knob, values] : schedule.TuneOf(group.name)) {
      alone.tune[absl::StrCat("k.", knob)] = values;
    }
    alone.groups[0].name = "k";
    kernels.insert(kernel::ToText(alone));
  }
  return kernels;
}

bool WasTried(const Lineage& lineage, const Schedule& mix) {
  const std::set<std::string> kernels = KernelsOf(mix);
  return std::any_of(
      lineage.candidates.begin(), lineage.candidates.end(), [&](const v1::Candidate& candidate) {
        const auto asked = candidate.action().arguments().find("schedule");
        const bool is_mix = asked != candidate.action().arguments().end();
        const auto tried = kernel::ParseSchedule(is_mix ? asked->second : candidate.schedule());
        return tried.ok() && tried->has_capture == mix.has_capture && KernelsOf(*tried) == kernels;
      });
}

}  // namespace

std::optional<v1::Action> FindMix(const Lineage& lineage, int parent) {
  std::optional<TimedSchedule> base = TimeGroups(lineage.candidates[static_cast<size_t>(parent)]);
  if (!base) return std::nullopt;
  double fastest = base->total_seconds();
  Mixer mixer(*std::move(base));
  for (const v1::Candidate& candidate : lineage.candidates) {
    const std::optional<TimedSchedule> other = TimeGroups(candidate);
    if (!other) continue;
    fastest = std::min(fastest, other->total_seconds());
    mixer.Take(*other);
  }
  const TimedSchedule& mix = mixer.mix();
  if (mix.total_seconds() >= kWholeRatio * fastest || WasTried(lineage, mix.schedule)) {
    return std::nullopt;
  }
  v1::Action action;
  action.set_type(v1::Action::TYPE_TUNE);
  action.set_text(absl::StrCat("tune by the fastest variant of each part, ", mixer.parts(),
                               mixer.parts() == 1 ? " part" : " parts", " changed after trial ",
                               lineage.trials()));
  for (const KernelGroup& group : mix.schedule.groups) {
    action.mutable_region()->add_kernels(group.name);
  }
  (*action.mutable_arguments())["schedule"] = kernel::ToText(mix.schedule);
  return action;
}

}  // namespace mtmc::search
