// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/action_space.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "kernel/action/launch_gaps.h"
#include "kernel/action/vendor_call.h"
#include "kernel/graph/text.h"
#include "kernel/view/group_kind.h"

namespace mtmc::kernel {
namespace {

// What `tune` may sweep over all groups together: each variant is a build.
constexpr size_t kMaxVariants = 64;
// Names that an action's text spells out.
constexpr size_t kMaxNames = 4;

// Builds the list. Lives for one call.
class Enumerator {
 public:
  Enumerator(const ScheduleContext& context, const Schedule& schedule,
             const ActionSpaceOptions& options)
      : context_(context), schedule_(schedule), options_(options), graph_(context, schedule) {}

  std::vector<LegalAction> Run() {
    AddChains();
    AddPairs();
    AddCalls();
    AddMoves();
    AddCapture();
    AddTune();
    Add({.type = "stop", .text = "stop"}, [this] { return schedule_; });
    return std::move(actions_);
  }

 private:
  const KernelGroup& GroupAt(int group) const {
    return schedule_.groups[static_cast<size_t>(group)];
  }

  GroupKind KindAt(int group) const { return KindOf(graph_.ViewOf(group)); }

  int GroupCount() const { return static_cast<int>(schedule_.groups.size()); }

  // Adds the action unless one with the same text is there: texts are identities.
  void Add(EngineAction action, std::function<Schedule()> apply) {
    if (!texts_.insert(action.text).second) return;
    actions_.push_back({std::move(action), std::move(apply)});
  }

  EngineAction MakeAction(std::string type, const std::set<int>& groups, std::string text) const {
    return kernel::MakeAction(context_, schedule_, groups, std::move(type), std::move(text));
  }

  // `a, b, c and d`, or `a, b, ... and z`.
  std::string NamesOf(const std::set<int>& groups) const {
    std::vector<std::string> names;
    names.reserve(groups.size());
    for (int group : groups) names.push_back(GroupAt(group).name);
    if (names.size() > kMaxNames) {
      const std::string last = names.back();
      names.resize(kMaxNames - 2);
      names.push_back("...");
      names.push_back(last);
    }
    const std::string last = names.back();
    names.pop_back();
    return names.empty() ? last : Concat(kernel::Join(names, ", "), " and ", last);
  }

  void AddFuse(const std::set<int>& members, const KernelGroup& joined, const std::string& text) {
    Add(MakeAction("fuse", members, text),
        [this, members, joined] { return ReplaceGroups(context_, schedule_, members, {joined}); });
  }

  // Neighbours by data flow, and readers of the same input for several reductions of one tensor.
  std::set<int> NeighboursOf(const std::set<int>& members) const {
    std::set<int> neighbours;
    for (int member : members) {
      neighbours.insert(graph_.ProducersOf(member).begin(), graph_.ProducersOf(member).end());
      neighbours.insert(graph_.ConsumersOf(member).begin(), graph_.ConsumersOf(member).end());
    }
    for (int member : members) neighbours.erase(member);
    return neighbours;
  }

  // The largest union reached by adding one legal neighbour after the other.
  std::set<int> Grow(int seed, bool only_pointwise) const {
    std::set<int> members = {seed};
    for (bool has_grown = true; has_grown;) {
      has_grown = false;
      for (int neighbour : NeighboursOf(members)) {
        if (only_pointwise && !IsElementwise(graph_.ViewOf(neighbour))) continue;
        std::set<int> larger = members;
        larger.insert(neighbour);
        if (!JoinGroups(context_, schedule_, graph_, larger)) continue;
        members = std::move(larger);
        has_grown = true;
      }
    }
    return members;
  }

  // Unions of three or more groups, which otherwise take a step per pair.
  void AddChains() {
    std::set<std::set<int>> seen;
    for (bool only_pointwise : {true, false}) {
      std::set<int> covered;
      for (int group = 0; group < GroupCount(); ++group) {
        if (TemplateOf(GroupAt(group)).is_call || covered.contains(group)) continue;
        if (only_pointwise != IsElementwise(graph_.ViewOf(group))) continue;
        const std::set<int> members = Grow(group, only_pointwise);
        covered.insert(members.begin(), members.end());
        if (members.size() < 3 || !seen.insert(members).second) continue;
        const std::optional<KernelGroup> joined = JoinGroups(context_, schedule_, graph_, members);
        const std::string text =
            only_pointwise
                ? Concat("fuse ", NamesOf(members))
                : Concat("fuse everything around ", GroupAt(group).name, ": ", NamesOf(members));
        AddFuse(members, *joined, text);
      }
    }
  }

  void AddPairs() {
    for (int group = 0; group < GroupCount(); ++group) {
      for (int consumer : graph_.ConsumersOf(group)) {
        const std::set<int> members = {group, consumer};
        const std::optional<KernelGroup> joined = JoinGroups(context_, schedule_, graph_, members);
        if (!joined) continue;
        const bool is_epilogue = KindAt(group) != GroupKind::kPointwise;
        const std::string& host = GroupAt(is_epilogue ? group : consumer).name;
        const std::string& guest = GroupAt(is_epilogue ? consumer : group).name;
        AddFuse(members, *joined, Concat("fuse ", guest, " into ", host));
      }
    }
    AddSiblings();
  }

  // Reductions of one input without data flow between them.
  void AddSiblings() {
    std::map<std::string, std::vector<int>> readers;
    for (int group = 0; group < GroupCount(); ++group) {
      if (TemplateOf(GroupAt(group)).is_call || KindAt(group) != GroupKind::kReduction) continue;
      for (const std::string& value : graph_.ViewOf(group).inputs) readers[value].push_back(group);
    }
    for (const auto& [value, groups] : readers) {
      for (size_t i = 1; i < groups.size(); ++i) {
        const std::set<int> members = {groups[i - 1], groups[i]};
        const std::optional<KernelGroup> joined = JoinGroups(context_, schedule_, graph_, members);
        if (joined) AddFuse(members, *joined, Concat("fuse ", NamesOf(members)));
      }
    }
  }

  void AddCalls() {
    if (!options_.allow_library) return;
    for (LegalAction& legal : EnumerateCalls(context_, schedule_, options_.allow_tf32)) {
      Add(std::move(legal.action), std::move(legal.apply));
    }
  }

  struct Move {
    int group = 0;
    KnobMove move;
  };

  void AddMoves() {
    // Same move on all groups of one kind, then group by group.
    std::vector<Move> moves;
    for (int group = 0; group < GroupCount(); ++group) {
      GroupView view = graph_.ViewOf(group);
      const KernelGroup complete = WithAllKnobs(view, context_.target);
      view.group = &complete;
      for (KnobMove& move : TemplateOf(complete).knobs().Moves(view, context_.target)) {
        moves.push_back({group, std::move(move)});
      }
    }
    std::map<std::string, std::vector<const Move*>> alike;
    std::vector<std::string> order;
    for (const Move& move : moves) {
      const std::string key = Concat(move.move.action, " all ", ToText(KindAt(move.group)),
                                     " kernels ", move.move.text);
      if (alike[key].empty()) order.push_back(key);
      alike[key].push_back(&move);
    }
    for (const std::string& key : order) {
      if (alike[key].size() > 1) AddMove(key, alike[key]);
    }
    for (const Move& move : moves) {
      AddMove(Concat(move.move.action, " ", GroupAt(move.group).name, " ", move.move.text),
              {&move});
    }
  }

  void AddMove(const std::string& text, const std::vector<const Move*>& moves) {
    std::set<int> groups;
    std::map<int, Knobs> knobs;
    for (const Move* move : moves) {
      groups.insert(move->group);
      knobs[move->group] = move->move.knobs;
    }
    EngineAction action = MakeAction(moves[0]->move.action, groups, text);
    for (const auto& [knob, value] : moves[0]->move.knobs) {
      if (moves.size() == 1) action.arguments[knob] = std::to_string(value);
    }
    Add(std::move(action), [this, knobs] {
      Schedule result = schedule_;
      for (const auto& [group, values] : knobs) {
        KernelGroup& changed = result.groups[static_cast<size_t>(group)];
        changed.knobs = values;
        // What was swept before the move was another kernel.
        std::erase_if(result.tune, [&changed](const auto& entry) {
          return entry.first.substr(0, entry.first.find('.')) == changed.name;
        });
      }
      return result;
    });
  }

  void AddCapture() {
    const bool is_useful = context_.target.dialect == Dialect::kCuda && !schedule_.has_capture &&
                           SomeLaunchShows(context_, schedule_);
    if (!is_useful) return;
    Add({.type = "capture", .text = "capture the whole plan"}, [this] {
      Schedule result = schedule_;
      result.has_capture = true;
      return result;
    });
  }

  void AddTune() {
    std::vector<std::map<std::string, std::vector<int64_t>>> sweeps;
    std::set<int> groups;
    size_t variants = 1;
    for (int group = 0; group < GroupCount(); ++group) {
      GroupView view = graph_.ViewOf(group);
      const KernelGroup complete = WithAllKnobs(view, context_.target);
      view.group = &complete;
      std::map<std::string, std::vector<int64_t>> knobs;
      size_t combinations = 1;
      std::vector<std::string> names;
      for (const KnobSweep& sweep : TemplateOf(complete).knobs().Sweeps(view, context_.target)) {
        const std::string name = Concat(complete.name, ".", sweep.knob);
        if (sweep.values.size() < 2 || schedule_.tune.contains(name)) continue;
        knobs[name] = sweep.values;
        combinations *= sweep.values.size();
        names.push_back(sweep.knob);
      }
      if (knobs.empty()) continue;
      Add(MakeAction("tune", {group},
                     Concat("tune ", complete.name, " over ", kernel::Join(names, " and "))),
          [this, knobs] { return WithTune(knobs); });
      sweeps.push_back(knobs);
      groups.insert(group);
      variants = std::min(variants * combinations, kMaxVariants + 1);
    }
    if (sweeps.size() < 2 || variants > kMaxVariants) return;
    std::map<std::string, std::vector<int64_t>> all;
    for (const auto& knobs : sweeps) all.insert(knobs.begin(), knobs.end());
    Add(MakeAction("tune", groups, "tune all kernels"), [this, all] { return WithTune(all); });
  }

  Schedule WithTune(const std::map<std::string, std::vector<int64_t>>& knobs) const {
    Schedule result = schedule_;
    result.tune.insert(knobs.begin(), knobs.end());
    return result;
  }

  const ScheduleContext& context_;
  const Schedule& schedule_;
  const ActionSpaceOptions options_;
  const GroupGraph graph_;
  std::set<std::string> texts_;
  std::vector<LegalAction> actions_;
};

}  // namespace

std::vector<LegalAction> EnumerateActions(const ScheduleContext& context, const Schedule& schedule,
                                          const ActionSpaceOptions& options) {
  // The lambdas refer to the enumerator's copies of nothing but its references, so it is kept
  // alive by each of them.
  auto enumerator = std::make_shared<Enumerator>(context, schedule, options);
  std::vector<LegalAction> actions = enumerator->Run();
  for (LegalAction& legal : actions) {
    legal.apply = [enumerator, apply = std::move(legal.apply)] { return apply(); };
  }
  return actions;
}

}  // namespace mtmc::kernel
