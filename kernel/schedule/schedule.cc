// SPDX-License-Identifier: Apache-2.0
#include "kernel/schedule/schedule.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "kernel/graph/identifier.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

// As many as a program may have directives, and as many bytes.
constexpr size_t kMaxGroups = 4096;
constexpr size_t kMaxTextBytes = size_t{1} << 20;
// More than are ever found (rewrite.cc).
constexpr size_t kMaxRewrites = 256;
// As many as a program may have tune parameters, with as many values each.
constexpr size_t kMaxTuneLines = 32;
constexpr size_t kMaxTuneValues = 64;

constexpr std::string_view kPrecisionNames[] = {"default", "tf32", "ieee"};

absl::Status Malformed(std::string_view what, std::string_view text) {
  return absl::InvalidArgumentError(Concat("schedule has ", what, " \"", text.substr(0, 80), "\""));
}

struct KeyValue {
  std::string_view key;
  std::string_view value;
};

// `key=value`; absent without `=`.
std::optional<KeyValue> FindKeyValue(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  return KeyValue{.key = text.substr(0, equals), .value = text.substr(equals + 1)};
}

absl::StatusOr<int64_t> ParseNumber(std::string_view what, std::string_view text) {
  const std::optional<int64_t> number = FindInteger(text);
  if (!number) return Malformed(Concat(what, " that is no 64-bit integer,"), text);
  return *number;
}

absl::StatusOr<std::vector<std::string>> ParseNodes(std::string_view text) {
  std::vector<std::string> nodes;
  for (std::string_view node : Split(text, ',')) {
    if (!IsIdentifier(node)) return Malformed("a node that is no identifier,", node);
    nodes.emplace_back(node);
  }
  return nodes;
}

absl::Status ParseField(std::string_view key, std::string_view value, KernelGroup& group) {
  if (key == "template") {
    if (!IsIdentifier(value)) return Malformed("a template that is no identifier,", value);
    group.template_name = value;
    return absl::OkStatus();
  }
  if (key == "nodes") {
    MTMC_ASSIGN_OR_RETURN(group.nodes, ParseNodes(value));
    return absl::OkStatus();
  }
  if (key == "precision") {
    const auto* found = std::find(std::begin(kPrecisionNames), std::end(kPrecisionNames), value);
    if (found == std::end(kPrecisionNames)) return Malformed("the unknown precision", value);
    group.precision =
        static_cast<LibraryCall::Precision>(std::distance(std::begin(kPrecisionNames), found));
    return absl::OkStatus();
  }
  if (!IsIdentifier(key)) return Malformed("a knob that is no identifier,", key);
  MTMC_ASSIGN_OR_RETURN(const int64_t number, ParseNumber("a knob value", value));
  group.knobs.emplace(std::string(key), number);
  return absl::OkStatus();
}

absl::StatusOr<KernelGroup> ParseGroup(const std::vector<std::string_view>& words) {
  if (words.size() < 2 || !IsIdentifier(words[1])) return Malformed("a group without a name,", "");
  KernelGroup group{.name = std::string(words[1])};
  std::set<std::string_view> fields;
  for (size_t i = 2; i < words.size(); ++i) {
    const std::optional<KeyValue> field = FindKeyValue(words[i]);
    if (!field) return Malformed("a field without a value,", words[i]);
    if (!fields.insert(field->key).second)
      return Malformed("a group with twice the field", words[i]);
    MTMC_RETURN_IF_ERROR(ParseField(field->key, field->value, group));
  }
  if (group.nodes.empty()) return Malformed("a group without nodes,", group.name);
  if (group.template_name.empty()) return Malformed("a group without a template,", group.name);
  return group;
}

absl::Status ParseRewrite(const std::vector<std::string_view>& words, Schedule& schedule) {
  const std::optional<KeyValue> node = words.size() == 3 ? FindKeyValue(words[2]) : std::nullopt;
  if (!node || node->key != "node" || !IsIdentifier(node->value) || !IsIdentifier(words[1])) {
    return Malformed("a rewrite line that is not `rewrite name node=node`:",
                     words.size() > 1 ? words[1] : "");
  }
  if (schedule.rewrites.size() == kMaxRewrites) {
    return Malformed(Concat("more than ", kMaxRewrites, " rewrites, at"), words[1]);
  }
  schedule.rewrites.push_back({std::string(words[1]), std::string(node->value)});
  return absl::OkStatus();
}

absl::Status ParseTune(const std::vector<std::string_view>& words, Schedule& schedule) {
  const std::optional<KeyValue> sides = words.size() == 2 ? FindKeyValue(words[1]) : std::nullopt;
  if (!sides || std::count(sides->key.begin(), sides->key.end(), '.') != 1) {
    return Malformed("a tune line that is not `tune group.knob=1,2`:",
                     words.size() == 2 ? words[1] : "");
  }
  if (schedule.tune.size() == kMaxTuneLines) {
    return Malformed(Concat("more than ", kMaxTuneLines, " tune lines, at"), sides->key);
  }
  std::vector<int64_t> values;
  for (std::string_view text : Split(sides->value, ',')) {
    MTMC_ASSIGN_OR_RETURN(const int64_t value, ParseNumber("a tune value", text));
    if (std::find(values.begin(), values.end(), value) != values.end()) {
      return Malformed("a tune line with twice the value", text);
    }
    if (values.size() == kMaxTuneValues) {
      return Malformed(Concat("more than ", kMaxTuneValues, " values for"), sides->key);
    }
    values.push_back(value);
  }
  if (!schedule.tune.emplace(std::string(sides->key), std::move(values)).second) {
    return Malformed("twice the tune knob", sides->key);
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const Schedule& schedule) {
  std::set<std::string, std::less<>> groups;
  std::set<std::string, std::less<>> nodes;
  for (const KernelGroup& group : schedule.groups) {
    if (!groups.insert(group.name).second) return Malformed("twice the group", group.name);
    for (const std::string& node : group.nodes) {
      if (!nodes.insert(node).second) return Malformed("twice the node", node);
    }
  }
  for (const auto& [knob, values] : schedule.tune) {
    if (!groups.contains(knob.substr(0, knob.find('.')))) {
      return Malformed("a tune line without its group,", knob);
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::map<std::string, std::vector<int64_t>, std::less<>> Schedule::TuneOf(
    std::string_view group) const {
  std::map<std::string, std::vector<int64_t>, std::less<>> knobs;
  for (const auto& [name, values] : tune) {
    const size_t dot = name.find('.');
    if (name.substr(0, dot) == group) knobs.emplace(name.substr(dot + 1), values);
  }
  return knobs;
}

std::string ToText(const Schedule& schedule) {
  std::string text;
  for (const RewriteStep& step : schedule.rewrites) {
    text += Concat("rewrite ", step.rewrite, " node=", step.node, "\n");
  }
  for (const KernelGroup& group : schedule.groups) {
    text += Concat("group ", group.name, " template=", group.template_name,
                   " nodes=", Join(group.nodes, ","));
    if (group.precision != LibraryCall::Precision::kDefault) {
      Append(text, " precision=", kPrecisionNames[static_cast<size_t>(group.precision)]);
    }
    for (const auto& [knob, value] : group.knobs) text += Concat(" ", knob, "=", value);
    text += Concat("\n");
  }
  for (const auto& [knob, values] : schedule.tune) {
    text += Concat("tune ", knob, "=", Join(values, ","), "\n");
  }
  if (schedule.has_capture) text += Concat("capture\n");
  return text;
}

absl::StatusOr<Schedule> ParseSchedule(std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return Malformed(Concat("more than ", kMaxTextBytes, " bytes, beginning with"), text);
  }
  Schedule schedule;
  for (std::string_view line : Split(text, '\n')) {
    const std::vector<std::string_view> words = SplitWords(line);
    if (words.empty()) continue;
    if (words[0] == "group") {
      if (schedule.groups.size() == kMaxGroups) {
        return Malformed(Concat("more than ", kMaxGroups, " groups, at"), line);
      }
      MTMC_ASSIGN_OR_RETURN(KernelGroup group, ParseGroup(words));
      schedule.groups.push_back(std::move(group));
    } else if (words[0] == "rewrite") {
      MTMC_RETURN_IF_ERROR(ParseRewrite(words, schedule));
    } else if (words[0] == "tune") {
      MTMC_RETURN_IF_ERROR(ParseTune(words, schedule));
    } else if (words[0] == "capture" && words.size() == 1) {
      schedule.has_capture = true;
    } else {
      return Malformed("the unknown line", line);
    }
  }
  MTMC_RETURN_IF_ERROR(CheckNames(schedule));
  return schedule;
}

std::string DigestOf(const Schedule& schedule) { return base::Sha256(ToText(schedule)).sha256_hex; }

}  // namespace mtmc::kernel
