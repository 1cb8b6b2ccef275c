// SPDX-License-Identifier: Apache-2.0
#include "server/search/tuned_records.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernel/action/task.h"
#include "kernel/graph/graph_proto.h"
#include "kernel/schedule/schedule.h"
#include "kernel/templates/template_registry.h"
#include "server/search/known_step.h"
#include "server/search/mix.h"
#include "server/search/parts.h"
#include "server/search/record_key.h"

namespace mtmc::search {
namespace {

using kernel::KernelGroup;
using kernel::Schedule;

constexpr char kRecords[] = "records";

// The graph of a job and the tasks in it; null where it cannot be read.
struct Network {
  static std::unique_ptr<const Network> Of(const v1::Job& job) {
    auto graph = kernel::FromProto(job.inspection().graph());
    if (!graph.ok()) return nullptr;
    auto network = std::make_unique<Network>();
    network->graph = *std::move(graph);
    auto tasks = kernel::TaskReader::Create(network->graph);
    if (!tasks.ok()) return nullptr;
    network->tasks = *std::move(tasks);
    return network;
  }

  std::string TaskOf(const KernelGroup& group) const {
    std::vector<std::string> nodes = group.nodes;
    return tasks->Read(nodes);
  }

  // The nodes of some groups, in definition order, and what they compute.
  std::pair<std::vector<std::string>, std::string> Union(const Schedule& schedule,
                                                         const std::vector<size_t>& groups) const {
    std::vector<std::string> nodes;
    for (const size_t group : groups) {
      const std::vector<std::string>& more = schedule.groups[group].nodes;
      nodes.insert(nodes.end(), more.begin(), more.end());
    }
    std::string task = tasks->Read(nodes);
    return {std::move(nodes), std::move(task)};
  }

  kernel::Graph graph;
  std::unique_ptr<const kernel::TaskReader> tasks;
};

// A record of the job's device and precision.
v1::TunedRecord NewRecord(const v1::Job& job) {
  v1::TunedRecord record;
  v1::DeviceClass& device = *record.mutable_device_class();
  device.set_product(job.device().product());
  device.set_driver_version(job.device().driver_version());
  device.set_toolchain_version(job.device().toolchain_version());
  record.set_dialect(job.dialect());
  record.set_precision(job.problem().precision());
  return record;
}

// The same groups with other names of their nodes.
void Rename(const std::map<std::string, std::string>& names, Schedule& schedule) {
  for (KernelGroup& group : schedule.groups) {
    for (std::string& node : group.nodes) node = names.at(node);
  }
}

Schedule Pick(const Schedule& schedule, const std::vector<size_t>& groups) {
  Schedule picked;
  for (const size_t group : groups) AppendGroup(schedule, group, picked);
  return picked;
}

bool HasCall(const Schedule& schedule) {
  return std::any_of(schedule.groups.begin(), schedule.groups.end(), [](const KernelGroup& group) {
    const kernel::KernelTemplate* printer = kernel::FindTemplate(group.template_name);
    return printer == nullptr || printer->is_call;
  });
}

// A record that fits some groups of a start, and what it puts in their place.
struct Match {
  const v1::TunedRecord* record = nullptr;
  std::vector<size_t> groups;
  Schedule replacement;

  double saved_seconds() const { return record->start_seconds() - record->seconds(); }
};

class Matcher {
 public:
  // `tasks` are those of the groups of `start`.
  Matcher(const Network& network, const v1::Job& job, const Schedule& start,
          const std::vector<std::string>& tasks)
      : network_(network), job_(job), start_(start), tasks_(tasks) {}

  // Every place where the record fits.
  void Add(const v1::TunedRecord& record) {
    const auto schedule = kernel::ParseSchedule(record.schedule());
    if (!CheckRecord(record).ok() || !schedule.ok()) return;
    if (record.seconds() >= kPartRatio * record.start_seconds()) return;
    if (!job_.search().allow_library() && HasCall(*schedule)) return;
    for (size_t first = 0; first < tasks_.size(); ++first) {
      std::vector<size_t> groups = Find(record, first);
      if (groups.empty()) continue;
      auto [nodes, task] = network_.Union(start_, groups);
      if (task != record.task()) continue;
      Match& match = matches_.emplace_back(
          Match{.record = &record, .groups = std::move(groups), .replacement = *schedule});
      std::map<std::string, std::string> names;
      for (size_t i = 0; i < nodes.size(); ++i) names[absl::StrCat("n", i)] = nodes[i];
      Rename(names, match.replacement);
    }
  }

  // Matches of which no two share a group, those first that save most.
  std::vector<Match> Choose() {
    std::stable_sort(matches_.begin(), matches_.end(), [](const Match& a, const Match& b) {
      return a.saved_seconds() > b.saved_seconds();
    });
    std::set<size_t> taken;
    std::vector<Match> chosen;
    for (Match& match : matches_) {
      if (std::any_of(match.groups.begin(), match.groups.end(),
                      [&taken](size_t group) { return taken.contains(group); })) {
        continue;
      }
      taken.insert(match.groups.begin(), match.groups.end());
      chosen.push_back(std::move(match));
    }
    return chosen;
  }

 private:
  // The groups of the part if its first one is `first`; empty if they are others.
  std::vector<size_t> Find(const v1::TunedRecord& record, size_t first) const {
    std::vector<size_t> groups;
    for (const auto& part : record.start_groups()) {
      const size_t group = first + static_cast<size_t>(part.offset());
      if (group >= tasks_.size() || tasks_[group] != part.task()) return {};
      groups.push_back(group);
    }
    return groups;
  }

  const Network& network_;
  const v1::Job& job_;
  const Schedule& start_;
  const std::vector<std::string>& tasks_;
  std::vector<Match> matches_;
};

Schedule Replace(const Schedule& start, const std::vector<Match>& matches) {
  std::set<size_t> dropped;
  for (const Match& match : matches) dropped.insert(match.groups.begin(), match.groups.end());
  Schedule replaced{.rewrites = start.rewrites, .has_capture = start.has_capture};
  for (size_t g = 0; g < start.groups.size(); ++g) {
    if (!dropped.contains(g)) AppendGroup(start, g, replaced);
  }
  for (const Match& match : matches) {
    for (size_t g = 0; g < match.replacement.groups.size(); ++g) {
      AppendGroup(match.replacement, g, replaced);
    }
  }
  return replaced;
}

}  // namespace

std::string ProjectOf(const v1::Job& job) {
  return job.name().substr(0, job.name().rfind("/jobs/"));
}

std::vector<v1::TunedRecord> LearnRecords(const v1::Job& job, const Lineage& lineage) {
  std::vector<v1::TunedRecord> records;
  if (lineage.candidates.size() < 2) return records;
  const std::optional<TimedSchedule> start = TimeGroups(lineage.candidates.front());
  if (!start) return records;
  const TimedSchedule best = MixPrograms(lineage, *start).program;
  std::unique_ptr<const Network> network;
  for (const Part& part : PartsOf(start->schedule, best.schedule)) {
    const double seconds = best.SecondsOf(part.theirs);
    const double start_seconds = start->SecondsOf(part.ours);
    if (seconds >= kPartRatio * start_seconds) continue;
    const Schedule variant = Pick(best.schedule, part.theirs);
    // The same kernels on a better day.
    if (KernelsOf(variant) == KernelsOf(Pick(start->schedule, part.ours))) continue;
    if (network == nullptr) network = Network::Of(job);
    if (network == nullptr) return {};
    const auto [nodes, task] = network->Union(start->schedule, part.ours);
    v1::TunedRecord record = NewRecord(job);
    record.set_task(task);
    for (const size_t group : part.ours) {
      auto& first = *record.add_start_groups();
      first.set_task(network->TaskOf(start->schedule.groups[group]));
      first.set_offset(static_cast<int>(group - part.ours.front()));
    }
    Schedule numbered = variant;
    std::map<std::string, std::string> numbers;
    for (size_t i = 0; i < nodes.size(); ++i) numbers[nodes[i]] = absl::StrCat("n", i);
    Rename(numbers, numbered);
    record.set_schedule(kernel::ToText(numbered));
    record.set_seconds(seconds);
    record.set_start_seconds(start_seconds);
    record.set_job(job.name());
    record.set_name(RecordName(ProjectOf(job), record));
    records.push_back(std::move(record));
  }
  return records;
}

struct Recall::Parts {
  std::unique_ptr<const Network> network;
  Schedule start;
  // Of its groups.
  std::vector<std::string> tasks;
};

Recall::Recall(const v1::Job& job, const v1::Candidate& start) : job_(job) {
  const auto schedule = kernel::ParseSchedule(start.schedule());
  if (start.schedule().empty() || !schedule.ok()) return;
  auto network = Network::Of(job);
  if (network == nullptr) return;
  std::vector<std::string> tasks;
  for (const KernelGroup& group : schedule->groups) tasks.push_back(network->TaskOf(group));
  parts_ = std::make_unique<const Parts>(
      Parts{.network = std::move(network), .start = *schedule, .tasks = std::move(tasks)});
}

Recall::~Recall() = default;

std::vector<std::string> Recall::Anchors() const {
  if (parts_ == nullptr) return {};
  std::set<std::string> anchors;
  v1::TunedRecord record = NewRecord(job_);
  auto& first = *record.add_start_groups();
  for (const std::string& task : parts_->tasks) {
    first.set_task(task);
    anchors.insert(RecordAnchor(record));
  }
  return {anchors.begin(), anchors.end()};
}

std::optional<v1::Action> Recall::Step(const std::vector<v1::TunedRecord>& records) const {
  if (parts_ == nullptr) return std::nullopt;
  Matcher matcher(*parts_->network, job_, parts_->start, parts_->tasks);
  for (const v1::TunedRecord& record : records) matcher.Add(record);
  const std::vector<Match> matches = matcher.Choose();
  if (matches.empty()) return std::nullopt;
  std::set<std::string> names;
  for (const Match& match : matches) names.insert(match.record->name());
  v1::Action action = StepTo(Replace(parts_->start, matches),
                             absl::StrCat("tune by what earlier jobs measured, ", matches.size(),
                                          matches.size() == 1 ? " part" : " parts", " changed"));
  (*action.mutable_arguments())[kRecords] = absl::StrJoin(names, "\n");
  return action;
}

std::vector<std::string> RefutedRecords(const Lineage& lineage) {
  std::vector<std::string> refuted;
  for (const v1::Candidate& candidate : lineage.candidates) {
    const auto names = candidate.action().arguments().find(kRecords);
    if (names == candidate.action().arguments().end()) continue;
    const bool is_rejected = candidate.state() == v1::Candidate::STATE_REJECTED;
    const bool is_judged =
        candidate.state() == v1::Candidate::STATE_EVALUATED && IsJudgement(candidate.evaluation());
    if (!is_rejected && !is_judged) continue;
    if (Speedup(candidate).value_or(0) > Speedup(lineage.candidates.front()).value_or(0)) continue;
    for (const absl::string_view name : absl::StrSplit(names->second, '\n')) {
      refuted.emplace_back(name);
    }
  }
  return refuted;
}

}  // namespace mtmc::search
