// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/start_schedule.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "kernel/action/launch_gaps.h"
#include "kernel/action/starting_knobs.h"
#include "kernel/graph/text.h"
#include "kernel/view/group_kind.h"

namespace mtmc::kernel {
namespace {

// Moved in about the time of one launch.
constexpr double kBytesOfAPack = 4 << 20;

// Sums of products, running sums and what has no loop form are where vendors
// have put years of work, or where no template helps.
bool HasLoop(const ScheduleContext& context, const std::string& node,
             std::initializer_list<Loop::Form> forms) {
  const std::vector<const Loop*>& loops = context.index.LoopsOf(node);
  return std::any_of(loops.begin(), loops.end(), [&](const Loop* loop) {
    return std::find(forms.begin(), forms.end(), loop->form) != forms.end();
  });
}

bool BelongsToVendor(const ScheduleContext& context, const std::string& node) {
  return HasLoop(context, node, {Loop::Form::kContract, Loop::Form::kScan, Loop::Form::kOpaque});
}

// Whether tensor cores could compute it.
bool IsProduct(const ScheduleContext& context, const std::string& node) {
  return HasLoop(context, node, {Loop::Form::kContract, Loop::Form::kOpaque});
}

void CallVendor(const ScheduleContext& context, LibraryCall::Precision precision,
                Schedule& schedule) {
  for (KernelGroup& group : schedule.groups) {
    if (!BelongsToVendor(context, group.nodes[0])) continue;
    const KernelTemplate* call = FindCall(ViewOf(context, group), context.target);
    if (call == nullptr) continue;
    group.template_name = call->name;
    if (IsProduct(context, group.nodes[0])) group.precision = precision;
  }
}

// Gives each product that may be faster so to the template of a precision tier.
void UseTensorCores(const ScheduleContext& context, Schedule& schedule) {
  for (KernelGroup& group : schedule.groups) {
    const KernelTemplate* tier = FindTier(context, group.nodes);
    if (tier != nullptr) group.template_name = tier->name;
  }
}

// Unions of groups, chosen on one graph and made at once: a graph per union
// would take seconds for a network of hundreds of operations.
class Unions {
 public:
  Unions(const ScheduleContext& context, const Schedule& schedule)
      : context_(context),
        schedule_(schedule),
        graph_(context, schedule),
        union_of_(schedule.groups.size()) {}

  // Whether the group has loops that others can be taken into.
  bool IsHost(int group) const { return KindOf(graph_.ViewOf(group)) != GroupKind::kPointwise; }

  // Joins the group with element-wise ones around it that stand in no union yet.
  void Grow(int seed) {
    if (union_of_[static_cast<size_t>(seed)]) return;
    Join(GrowByPointwise(context_, schedule_, graph_, seed, taken_));
  }

  // Joins small element-wise groups of one shape that stand in no union yet and have nothing
  // to do with each other: each would take less time than its launch.
  void Pack() {
    std::map<std::vector<int64_t>, std::vector<int>> alike;
    for (size_t g = 0; g < schedule_.groups.size(); ++g) {
      const GroupView& view = graph_.ViewOf(static_cast<int>(g));
      if (union_of_[g] || !IsElementwise(view)) continue;
      if (TemplateOf(*view.group).cost(view).bytes > kBytesOfAPack / kMaxJoined) continue;
      alike[TypeOf(view, view.outputs[0]).shape].push_back(static_cast<int>(g));
    }
    for (const auto& [shape, groups] : alike) {
      std::set<int> members;
      for (const int group : groups) {
        members.insert(group);
        // One that waits for others of the pack, by way of what is outside.
        if (ClosesCycle(members)) members.erase(group);
        if (members.size() == kMaxJoined) Join(std::exchange(members, {}));
      }
      Join(std::move(members));
    }
  }

  Schedule Apply() const { return ReplaceGroups(context_, schedule_, taken_, joined_); }

 private:
  // Makes the members one union, if there are several and they may be one.
  void Join(std::set<int> members) {
    if (members.size() < 2 || ClosesCycle(members)) return;
    std::optional<KernelGroup> joined = JoinGroups(context_, schedule_, graph_, members);
    if (!joined || !names_.insert(joined->name).second) return;
    for (const int member : members) union_of_[static_cast<size_t>(member)] = unions_.size();
    taken_.insert(members.begin(), members.end());
    unions_.push_back(std::move(members));
    joined_.push_back(*std::move(joined));
  }

  // Whether a path leaves the members and comes back, where each union is one.
  bool ClosesCycle(const std::set<int>& members) const {
    std::set<int> reached;
    std::vector<int> pending(members.begin(), members.end());
    while (!pending.empty()) {
      const int group = pending.back();
      pending.pop_back();
      for (const int consumer : graph_.ConsumersOf(group)) {
        const bool is_inside = members.contains(consumer);
        if (is_inside && !members.contains(group)) return true;
        if (is_inside || reached.contains(consumer)) continue;
        const std::optional<size_t> whole = union_of_[static_cast<size_t>(consumer)];
        const std::set<int> arrived = whole ? unions_[*whole] : std::set<int>{consumer};
        reached.insert(arrived.begin(), arrived.end());
        pending.insert(pending.end(), arrived.begin(), arrived.end());
      }
    }
    return false;
  }

  const ScheduleContext& context_;
  const Schedule& schedule_;
  const GroupGraph graph_;
  std::vector<std::optional<size_t>> union_of_;
  std::vector<std::set<int>> unions_;
  std::vector<KernelGroup> joined_;
  std::set<int> taken_;
  std::set<std::string> names_;
};

// Joins every group with the element-wise ones around it. Those with a loop of
// their own first: what they take along costs nothing, and chains of
// element-wise groups are what remains. Small ones that are left go together.
Schedule JoinNeighbours(const ScheduleContext& context, const Schedule& schedule) {
  Unions unions(context, schedule);
  for (const bool is_host : {true, false}) {
    for (size_t g = 0; g < schedule.groups.size(); ++g) {
      if (TemplateOf(schedule.groups[g]).is_call) continue;
      if (unions.IsHost(static_cast<int>(g)) == is_host) unions.Grow(static_cast<int>(g));
    }
  }
  unions.Pack();
  return unions.Apply();
}

std::string_view ToText(StartMapping mapping) {
  switch (mapping) {
    case StartMapping::kEager:
      return "eager";
    case StartMapping::kIeee:
      return "ieee";
    case StartMapping::kTensorCores:
      return "tensor_cores";
    case StartMapping::kOwn:
      return "own";
    case StartMapping::kPlain:
      return "plain";
    case StartMapping::kNaive:
      return "naive";
  }
  return "naive";
}

std::string_view Describe(StartMapping mapping) {
  switch (mapping) {
    case StartMapping::kEager:
      return "library calls and joined kernels";
    case StartMapping::kIeee:
      return "library calls in FP32 throughout and joined kernels";
    case StartMapping::kTensorCores:
      return "products on tensor cores, library calls and joined kernels";
    case StartMapping::kOwn:
      return "kernels of our own";
    case StartMapping::kPlain:
      return "one call or kernel per operation";
    case StartMapping::kNaive:
      return "the simplest kernel per operation";
  }
  return "";
}

}  // namespace

absl::StatusOr<Schedule> MakeStartSchedule(const ScheduleContext& context, StartMapping mapping) {
  MTMC_ASSIGN_OR_RETURN(Schedule schedule, MakeNaiveSchedule(context));
  if (mapping == StartMapping::kNaive) return schedule;
  const bool is_ieee = mapping == StartMapping::kIeee && context.target.dialect == Dialect::kCuda;
  if (mapping != StartMapping::kOwn && context.allow_library) {
    CallVendor(context, is_ieee ? LibraryCall::Precision::kIeee : LibraryCall::Precision::kDefault,
               schedule);
  }
  if (mapping == StartMapping::kTensorCores) UseTensorCores(context, schedule);
  if (mapping != StartMapping::kPlain) schedule = JoinNeighbours(context, schedule);
  for (KernelGroup& group : schedule.groups) group.knobs = StartingKnobs(context, group);
  schedule.has_capture = context.target.dialect == Dialect::kCuda &&
                         mapping != StartMapping::kPlain && LaunchesShow(context, schedule);
  return schedule;
}

std::vector<LegalAction> EnumerateRestarts(const ScheduleContext& context,
                                           const Schedule& schedule) {
  std::vector<LegalAction> restarts;
  std::vector<Schedule> seen = {schedule};
  for (const StartMapping mapping : {StartMapping::kEager, StartMapping::kIeee, StartMapping::kOwn,
                                     StartMapping::kPlain, StartMapping::kNaive}) {
    const absl::StatusOr<Schedule> start = MakeStartSchedule(context, mapping);
    if (!start.ok() || std::find(seen.begin(), seen.end(), *start) != seen.end()) continue;
    seen.push_back(*start);
    EngineAction action{.type = "restart", .text = Concat("begin again with ", Describe(mapping))};
    action.arguments = {{"mapping", std::string(ToText(mapping))},
                        {"rank", std::to_string(restarts.size())}};
    restarts.push_back({std::move(action), [start] { return *start; }});
  }
  return restarts;
}

}  // namespace mtmc::kernel
