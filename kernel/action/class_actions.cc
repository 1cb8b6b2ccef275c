// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/class_actions.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "kernel/action/task.h"
#include "kernel/action/together.h"
#include "kernel/graph/text.h"
#include "kernel/writer/source_comment.h"

namespace mtmc::kernel {
namespace {

// `tile linear_1 as a kernel of our own (line 4)` without its lines.
std::string_view WithoutLines(std::string_view text) {
  return text.substr(0, text.rfind(" (line"));
}

class ClassEnumerator {
 public:
  ClassEnumerator(const ScheduleContext& context, const Schedule& schedule)
      : context_(context), schedule_(schedule), graph_(context, schedule) {
    for (size_t g = 0; g < schedule.groups.size(); ++g) {
      const KernelGroup& group = schedule.groups[g];
      index_[group.name] = static_cast<int>(g);
      tasks_.push_back(Concat(VariantOf(group), "\n", TaskOf(context, group.nodes)));
    }
  }

  std::vector<LegalAction> Run(const std::vector<LegalAction>& single) {
    std::vector<std::string> order;
    for (const LegalAction& legal : single) {
      if (legal.action.kernels.empty() || legal.action.type == "tune") continue;
      taken_.insert(RegionOf(legal.action));
      const std::string key = KeyOf(legal.action);
      std::vector<const LegalAction*>& equals = classes_[key];
      if (equals.empty()) order.push_back(key);
      if (AreFree(key, legal.action)) equals.push_back(&legal);
    }
    std::vector<LegalAction> actions;
    for (const std::string& key : order) {
      if (std::optional<LegalAction> joined = Join(classes_[key])) {
        actions.push_back(*std::move(joined));
      }
    }
    return actions;
  }

 private:
  // Template and choices of a group, which an action starts from.
  static std::string VariantOf(const KernelGroup& group) {
    std::string text = Concat(group.template_name, " ", static_cast<int>(group.precision));
    for (const auto& [knob, value] : group.knobs) text += Concat(" ", knob, "=", value);
    return text;
  }

  std::set<int> GroupsOf(const EngineAction& action) const {
    std::set<int> groups;
    for (const std::string& kernel : action.kernels) groups.insert(index_.at(kernel));
    return groups;
  }

  // What to do, and to what, where names do not count.
  std::string KeyOf(const EngineAction& action) const {
    std::string key = action.type;
    for (const auto& [name, value] : action.arguments) key += Concat(" ", name, "=", value);
    for (const int group : GroupsOf(action)) {
      key += Concat("\n", tasks_[static_cast<size_t>(group)]);
    }
    return key;
  }

  // The step and its groups, to see that an action of `single` does as much.
  static std::string RegionOf(const EngineAction& action) {
    return Concat(action.type, " ", kernel::Join(action.kernels, " "));
  }

  // Takes the action's groups for the class, unless an earlier member has one.
  bool AreFree(const std::string& key, const EngineAction& action) {
    std::set<int>& members = members_[key];
    const std::set<int> groups = GroupsOf(action);
    const bool is_free = std::none_of(groups.begin(), groups.end(),
                                      [&](int group) { return members.contains(group); });
    if (is_free) members.insert(groups.begin(), groups.end());
    return is_free;
  }

  std::optional<LegalAction> Join(const std::vector<const LegalAction*>& equals) const {
    if (equals.size() < 2) return std::nullopt;
    EngineAction action = equals[0]->action;
    action.kernels.clear();
    action.nodes.clear();
    std::vector<std::function<Schedule()>> steps;
    for (const LegalAction* legal : equals) {
      const EngineAction& one = legal->action;
      action.kernels.insert(action.kernels.end(), one.kernels.begin(), one.kernels.end());
      action.nodes.insert(action.nodes.end(), one.nodes.begin(), one.nodes.end());
      steps.push_back(legal->apply);
    }
    if (taken_.contains(RegionOf(action)) || ClosesCycle(equals)) return std::nullopt;
    const SourceLines lines = LinesOf(context_.graph, action.nodes);
    action.first_line = lines.first;
    action.last_line = lines.last;
    action.arguments["equals"] = std::to_string(equals.size());
    const std::string where = ToText(lines);
    action.text =
        Concat(WithoutLines(equals[0]->action.text), " and its ", equals.size() - 1,
               equals.size() == 2 ? " equal" : " equals", where.empty() ? "" : " ", where);
    return LegalAction{std::move(action),
                       [context = &context_, from = &schedule_, steps = std::move(steps)] {
                         // A cycle was ruled out above, and a group is in one step.
                         return ApplyTogether(*context, *from, steps).value_or(*from);
                       }};
  }

  // Unions that are legal one by one can wait for each other together.
  bool ClosesCycle(const std::vector<const LegalAction*>& equals) const {
    std::vector<int> whole(tasks_.size());
    std::iota(whole.begin(), whole.end(), 0);
    for (const LegalAction* legal : equals) {
      const std::set<int> groups = GroupsOf(legal->action);
      for (const int group : groups) whole[static_cast<size_t>(group)] = *groups.begin();
    }
    // Takes away what waits for nothing until nothing is left, or only a cycle.
    std::vector<int> waits_for(tasks_.size(), 0);
    std::map<int, std::vector<int>> readers;
    for (size_t g = 0; g < tasks_.size(); ++g) {
      for (const int consumer : graph_.ConsumersOf(static_cast<int>(g))) {
        const int to = whole[static_cast<size_t>(consumer)];
        if (to == whole[g]) continue;
        readers[whole[g]].push_back(to);
        ++waits_for[static_cast<size_t>(to)];
      }
    }
    std::vector<int> ready;
    for (size_t g = 0; g < tasks_.size(); ++g) {
      if (waits_for[g] == 0) ready.push_back(static_cast<int>(g));
    }
    size_t done = 0;
    for (; done < ready.size(); ++done) {
      for (const int reader : readers[ready[done]]) {
        if (--waits_for[static_cast<size_t>(reader)] == 0) ready.push_back(reader);
      }
    }
    return done < tasks_.size();
  }

  const ScheduleContext& context_;
  const Schedule& schedule_;
  const GroupGraph graph_;
  // Of each group of the schedule: its task, and the variant that it wears.
  std::vector<std::string> tasks_;
  std::map<std::string, int, std::less<>> index_;
  std::map<std::string, std::vector<const LegalAction*>> classes_;
  std::map<std::string, std::set<int>> members_;
  std::set<std::string> taken_;
};

}  // namespace

std::vector<LegalAction> EnumerateClassActions(const ScheduleContext& context,
                                               const Schedule& schedule,
                                               const std::vector<LegalAction>& single) {
  return ClassEnumerator(context, schedule).Run(single);
}

}  // namespace mtmc::kernel
