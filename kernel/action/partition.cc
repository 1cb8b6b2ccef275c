// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/partition.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "kernel/graph/text.h"
#include "kernel/view/group_kind.h"

namespace mtmc::kernel {
namespace {

// A byte of memory traffic takes about as long as this many operations: 6 on an H200 (4.3 TB/s,
// 25e12 operations per second), 2 to 4 on a CPU core.
constexpr double kOperationsPerByte = 4;

bool IsUsed(const ScheduleContext& context, std::string_view node) {
  const std::vector<const Loop*>& loops = context.index.LoopsOf(node);
  return std::any_of(loops.begin(), loops.end(), [&](const Loop* loop) {
    return std::any_of(loop->results.begin(), loop->results.end(), [&](const std::string& value) {
      if (context.index.IsOutput(value)) return true;
      const std::vector<std::string>& readers = context.index.ReadersOf(value);
      return std::any_of(readers.begin(), readers.end(),
                         [&](const std::string& reader) { return reader != node; });
    });
  });
}

std::map<std::string, int, std::less<>> GroupOfNode(const Schedule& schedule) {
  std::map<std::string, int, std::less<>> group_of;
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    for (const std::string& node : schedule.groups[g].nodes) group_of[node] = static_cast<int>(g);
  }
  return group_of;
}

int LastPosition(const ScheduleContext& context, const KernelGroup& group) {
  int last = -1;
  for (const std::string& node : group.nodes) {
    last = std::max(last, context.index.PositionOf(node));
  }
  return last;
}

// Groups so that producers come first, otherwise by their last node.
void SortGroups(const ScheduleContext& context, Schedule& schedule) {
  std::stable_sort(schedule.groups.begin(), schedule.groups.end(),
                   [&](const KernelGroup& a, const KernelGroup& b) {
                     return LastPosition(context, a) < LastPosition(context, b);
                   });
  const GroupGraph graph(context, schedule);
  std::vector<KernelGroup> sorted;
  std::vector<bool> done(schedule.groups.size(), false);
  while (sorted.size() < schedule.groups.size()) {
    const size_t before = sorted.size();
    for (size_t g = 0; g < schedule.groups.size(); ++g) {
      const std::set<int>& producers = graph.ProducersOf(static_cast<int>(g));
      const bool is_ready = std::all_of(producers.begin(), producers.end(), [&](int producer) {
        return done[static_cast<size_t>(producer)];
      });
      if (done[g] || !is_ready) continue;
      done[g] = true;
      sorted.push_back(schedule.groups[g]);
    }
    // A cycle: CheckSchedule reports it.
    if (sorted.size() == before) return;
  }
  schedule.groups = std::move(sorted);
}

// `mul_gelu`, or `mul_to_add_3` when that is too long, made unique in the schedule.
std::string NameOf(const Schedule& schedule, const std::set<int>& members,
                   const std::vector<std::string>& nodes, const KernelGroup* anchor) {
  constexpr size_t kMaxBytes = 32;
  std::string base;
  if (anchor != nullptr) {
    base = anchor->name;
  } else {
    base = Join(nodes, "_");
    if (base.size() > kMaxBytes) base = Concat(nodes.front(), "_to_", nodes.back());
  }
  const auto is_taken = [&](const std::string& name) {
    for (size_t g = 0; g < schedule.groups.size(); ++g) {
      if (!members.contains(static_cast<int>(g)) && schedule.groups[g].name == name) return true;
    }
    return false;
  };
  std::string name = base;
  for (int suffix = 2; is_taken(name); ++suffix) name = Concat(base, "_", suffix);
  return name;
}

// Joining may compute inlined maps several times; it must save more traffic than that costs.
bool IsWorthwhile(const ScheduleContext& context, const Schedule& schedule,
                  const std::set<int>& members, const GroupView& joined) {
  double separate_operations = 0;
  double separate_bytes = 0;
  for (int member : members) {
    const KernelGroup& group = schedule.groups[static_cast<size_t>(member)];
    const GroupCost cost = TemplateOf(group).cost(ViewOf(context, group));
    separate_operations += cost.operations;
    separate_bytes += cost.bytes;
  }
  const GroupCost cost = TemplateOf(*joined.group).cost(joined);
  const double more_operations = cost.operations - separate_operations;
  return more_operations <= kOperationsPerByte * (separate_bytes - cost.bytes);
}

}  // namespace

GroupView ViewOf(const ScheduleContext& context, const KernelGroup& group) {
  return ViewOf(context.graph, context.nest, context.index, group);
}

const KernelTemplate* FindOwnTemplate(const ScheduleContext& context,
                                      const std::vector<std::string>& nodes) {
  const KernelGroup group{.name = nodes.front(), .nodes = nodes};
  return FindOwnTemplate(ViewOf(context, group), context.target);
}

const KernelTemplate* FindTier(const ScheduleContext& context,
                               const std::vector<std::string>& nodes) {
  if (!context.allow_library) return nullptr;
  const KernelGroup group{.name = nodes.front(), .nodes = nodes};
  return FindTier(ViewOf(context, group), context.target);
}

bool IsElementwise(const GroupView& view) {
  return KindOf(view) == GroupKind::kPointwise && !TemplateOf(*view.group).is_call;
}

absl::StatusOr<Schedule> MakeNaiveSchedule(const ScheduleContext& context) {
  Schedule schedule{.rewrites = context.rewrites};
  for (const GraphNode& node : context.graph.nodes) {
    if (context.index.IsFree(node.name) || !IsUsed(context, node.name)) continue;
    KernelGroup group{.name = node.name, .nodes = {node.name}};
    const GroupView view = ViewOf(context, group);
    const KernelTemplate* printer = FindOwnTemplate(view, context.target);
    if (printer == nullptr && context.allow_library) printer = FindCall(view, context.target);
    if (printer == nullptr) {
      return absl::UnimplementedError(Concat("line ", node.line, ": no kernel of ours computes ",
                                             node.op, ", and a program may not call it"));
    }
    group.template_name = printer->name;
    schedule.groups.push_back(std::move(group));
  }
  return schedule;
}

absl::Status CheckSchedule(const ScheduleContext& context, const Schedule& schedule) {
  for (const KernelGroup& group : schedule.groups) {
    for (const std::string& node : group.nodes) {
      if (context.index.PositionOf(node) < 0) {
        return absl::InvalidArgumentError(
            Concat("schedule names \"", node, "\", which is no node of the graph"));
      }
    }
    const GroupView view = ViewOf(context, group);
    MTMC_RETURN_IF_ERROR(CheckGroup(view, context.target, schedule.TuneOf(group.name)));
  }
  const GroupGraph graph(context, schedule);
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    for (int producer : graph.ProducersOf(static_cast<int>(g))) {
      if (producer >= static_cast<int>(g)) {
        return absl::InvalidArgumentError(
            Concat("group \"", schedule.groups[g].name, "\" stands before a group it reads"));
      }
    }
  }
  return absl::OkStatus();
}

GroupGraph::GroupGraph(const ScheduleContext& context, const Schedule& schedule)
    : producers_(schedule.groups.size()), consumers_(schedule.groups.size()) {
  const std::map<std::string, int, std::less<>> group_of = GroupOfNode(schedule);
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    views_.push_back(kernel::ViewOf(context, schedule.groups[g]));
    for (const std::string& value : views_.back().inputs) {
      const Loop* producer = context.index.ProducerOf(value);
      if (producer == nullptr) continue;
      const auto found = group_of.find(producer->node);
      if (found == group_of.end() || found->second == static_cast<int>(g)) continue;
      producers_[g].insert(found->second);
      consumers_[static_cast<size_t>(found->second)].insert(static_cast<int>(g));
    }
  }
}

bool GroupGraph::HasPathOutside(const std::set<int>& members) const {
  std::set<int> reached;
  std::vector<int> pending;
  for (int member : members) {
    for (int consumer : ConsumersOf(member)) {
      if (!members.contains(consumer)) pending.push_back(consumer);
    }
  }
  while (!pending.empty()) {
    const int group = pending.back();
    pending.pop_back();
    if (members.contains(group)) return true;
    if (!reached.insert(group).second) continue;
    for (int consumer : ConsumersOf(group)) pending.push_back(consumer);
  }
  return false;
}

std::optional<KernelGroup> JoinGroups(const ScheduleContext& context, const Schedule& schedule,
                                      const GroupGraph& graph, const std::set<int>& members) {
  KernelGroup joined;
  const KernelGroup* anchor = nullptr;
  for (int member : members) {
    const KernelGroup& group = schedule.groups[static_cast<size_t>(member)];
    if (TemplateOf(group).is_call) return std::nullopt;
    if (KindOf(graph.ViewOf(member)) != GroupKind::kPointwise && anchor == nullptr) anchor = &group;
    joined.nodes.insert(joined.nodes.end(), group.nodes.begin(), group.nodes.end());
  }
  if (graph.HasPathOutside(members)) return std::nullopt;
  std::sort(joined.nodes.begin(), joined.nodes.end(), [&](const auto& a, const auto& b) {
    return context.index.PositionOf(a) < context.index.PositionOf(b);
  });
  const GroupView view = ViewOf(context, joined);
  // What was chosen for the host stays chosen, where it can print more.
  const KernelTemplate* printer = anchor != nullptr ? &TemplateOf(*anchor) : nullptr;
  if (printer == nullptr || printer->tier.empty() || !printer->accepts(view, context.target)) {
    printer = FindOwnTemplate(view, context.target);
  }
  if (printer == nullptr) return std::nullopt;
  joined.template_name = printer->name;
  joined.name = NameOf(schedule, members, joined.nodes, anchor);
  if (!IsWorthwhile(context, schedule, members, view)) return std::nullopt;
  const KernelGroup& first =
      anchor != nullptr ? *anchor : schedule.groups[static_cast<size_t>(*members.begin())];
  if (first.template_name == joined.template_name && printer->keeps_knobs) {
    joined.knobs = first.knobs;
    // Fewer elements than the member's may not divide by its vectors.
    if (!CheckGroup(view, context.target, {}).ok()) joined.knobs.clear();
  }
  return joined;
}

std::set<int> GrowByPointwise(const ScheduleContext& context, const Schedule& schedule,
                              const GroupGraph& graph, int seed, const std::set<int>& except) {
  std::set<int> members = {seed};
  std::set<int> refused = except;
  for (bool has_grown = true; has_grown && members.size() < kMaxJoined;) {
    has_grown = false;
    std::set<int> neighbours;
    for (int member : members) {
      neighbours.insert(graph.ProducersOf(member).begin(), graph.ProducersOf(member).end());
      neighbours.insert(graph.ConsumersOf(member).begin(), graph.ConsumersOf(member).end());
    }
    for (int neighbour : neighbours) {
      if (!IsElementwise(graph.ViewOf(neighbour)) || members.contains(neighbour) ||
          refused.contains(neighbour))
        continue;
      std::set<int> larger = members;
      larger.insert(neighbour);
      // What does not fit now seldom fits a larger union, and networks have many neighbours.
      if (!JoinGroups(context, schedule, graph, larger)) {
        refused.insert(neighbour);
        continue;
      }
      members = std::move(larger);
      has_grown = true;
      break;
    }
  }
  return members;
}

Schedule ReplaceGroups(const ScheduleContext& context, const Schedule& schedule,
                       const std::set<int>& members, const std::vector<KernelGroup>& groups) {
  Schedule result{
      .rewrites = schedule.rewrites, .has_capture = schedule.has_capture, .tune = schedule.tune};
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    const KernelGroup& group = schedule.groups[g];
    if (!members.contains(static_cast<int>(g))) {
      result.groups.push_back(group);
      continue;
    }
    std::erase_if(result.tune, [&](const auto& entry) {
      return entry.first.substr(0, entry.first.find('.')) == group.name;
    });
  }
  result.groups.insert(result.groups.end(), groups.begin(), groups.end());
  SortGroups(context, result);
  return result;
}

}  // namespace mtmc::kernel
