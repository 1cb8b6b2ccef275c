// SPDX-License-Identifier: Apache-2.0
#include "server/search/parts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mtmc::search {

using kernel::KernelGroup;
using kernel::Schedule;

std::vector<Part> PartsOf(const Schedule& ours, const Schedule& theirs) {
  if (ours.rewrites != theirs.rewrites) return {};
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

void AppendGroup(const Schedule& from, size_t group, Schedule& to) {
  KernelGroup appended = from.groups[group];
  const std::string name = appended.name;
  const auto is_taken = [&to](const std::string& text) {
    return std::any_of(to.groups.begin(), to.groups.end(),
                       [&text](const KernelGroup& other) { return other.name == text; });
  };
  for (int suffix = 2; is_taken(appended.name); ++suffix) {
    appended.name = absl::StrCat(name, "_", suffix);
  }
  for (auto& [knob, values] : from.TuneOf(name)) {
    to.tune[absl::StrCat(appended.name, ".", knob)] = values;
  }
  to.groups.push_back(std::move(appended));
}

}  // namespace mtmc::search
