// SPDX-License-Identifier: Apache-2.0
#include "server/search/mix.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/search/group_times.h"
#include "server/search/parts.h"

namespace mtmc::search {
namespace {

using kernel::KernelGroup;
using kernel::Schedule;

// What the whole must promise, over the fastest program so far, to be worth a trial.
constexpr double kWholeRatio = 0.98;

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
      if (other.SecondsOf(part.theirs) >= kPartRatio * mix_.SecondsOf(part.ours)) continue;
      dropped.insert(part.ours.begin(), part.ours.end());
      added.insert(added.end(), part.theirs.begin(), part.theirs.end());
      ++parts_;
    }
    if (dropped.empty()) return;
    TimedSchedule next{
        .schedule = {.rewrites = mix_.schedule.rewrites, .has_capture = mix_.schedule.has_capture}};
    for (size_t g = 0; g < mix_.seconds.size(); ++g) {
      if (!dropped.contains(g)) Append(mix_, g, next);
    }
    for (const size_t g : added) Append(other, g, next);
    mix_ = std::move(next);
  }

 private:
  static void Append(const TimedSchedule& from, size_t g, TimedSchedule& to) {
    AppendGroup(from.schedule, g, to.schedule);
    to.seconds.push_back(from.seconds[g]);
  }

  TimedSchedule mix_;
  int parts_ = 0;
};

bool WasTried(const Lineage& lineage, const Schedule& mix) {
  const std::set<std::string> kernels = KernelsOf(mix);
  return std::any_of(
      lineage.candidates.begin(), lineage.candidates.end(), [&](const v1::Candidate& candidate) {
        const auto asked = candidate.action().arguments().find("schedule");
        const bool is_mix = asked != candidate.action().arguments().end();
        const auto tried = kernel::ParseSchedule(is_mix ? asked->second : candidate.schedule());
        return tried.ok() && tried->rewrites == mix.rewrites &&
               tried->has_capture == mix.has_capture && KernelsOf(*tried) == kernels;
      });
}

}  // namespace

Mix MixPrograms(const Lineage& lineage, TimedSchedule base) {
  Mix mix{.fastest_seconds = base.total_seconds()};
  Mixer mixer(std::move(base));
  for (const v1::Candidate& candidate : lineage.candidates) {
    const std::optional<TimedSchedule> other = TimeGroups(candidate);
    if (!other) continue;
    mix.fastest_seconds = std::min(mix.fastest_seconds, other->total_seconds());
    mixer.Take(*other);
  }
  mix.program = mixer.mix();
  mix.changed_parts = mixer.parts();
  return mix;
}

v1::Action StepTo(const Schedule& schedule, const std::string& text) {
  v1::Action action;
  action.set_type(v1::Action::TYPE_TUNE);
  action.set_text(text);
  for (const KernelGroup& group : schedule.groups) {
    action.mutable_region()->add_kernels(group.name);
  }
  (*action.mutable_arguments())["schedule"] = kernel::ToText(schedule);
  return action;
}

std::optional<v1::Action> FindMix(const Lineage& lineage, int parent) {
  std::optional<TimedSchedule> base = TimeGroups(lineage.candidates[static_cast<size_t>(parent)]);
  if (!base) return std::nullopt;
  const auto [program, changed_parts, fastest_seconds] = MixPrograms(lineage, *std::move(base));
  if (program.total_seconds() >= kWholeRatio * fastest_seconds ||
      WasTried(lineage, program.schedule)) {
    return std::nullopt;
  }
  return StepTo(program.schedule,
                absl::StrCat("tune by the fastest variant of each part, ", changed_parts,
                             changed_parts == 1 ? " part" : " parts", " changed after trial ",
                             lineage.trials()));
}

}  // namespace mtmc::search
