// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox/launch_spec.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace mtmc::worker {
namespace {

using nlohmann::json;

// Far beyond any host's Python and drivers.
constexpr size_t kMaxPaths = 4096;
constexpr size_t kMaxPathBytes = 4096;
constexpr int kMaxDescriptors = 16;

absl::Status Refuse(std::string_view field, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(field), " ", std::string(why)));
}

bool IsCleanPath(const std::string& path) {
  if (path.empty() || path[0] != '/' || path.size() > kMaxPathBytes) return false;
  if (path.find('\0') != path.npos) return false;
  if (path == "/") return true;
  for (const auto part : absl::StrSplit(path.substr(1), '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

// Takes fields out of an object one by one, so that what is left is unknown.
class Fields {
 public:
  explicit Fields(const json& object) : object_(object) {}

  absl::StatusOr<std::string> Text(const char* name) {
    const json* value = Take(name);
    if (value == nullptr || !value->is_string()) return Refuse(name, "must be a string");
    return value->get<std::string>();
  }

  absl::StatusOr<std::string> Path(const char* name) {
    MTMC_ASSIGN_OR_RETURN(std::string path, Text(name));
    if (!IsCleanPath(path)) return Refuse(name, "must be a clean absolute path");
    return path;
  }

  absl::StatusOr<uint64_t> Number(const char* name) {
    const json* value = Take(name);
    if (value == nullptr || !value->is_number_unsigned()) {
      return Refuse(name, "must be a whole number");
    }
    return value->get<uint64_t>();
  }

  absl::StatusOr<std::vector<std::string>> Texts(const char* name) {
    const json* value = Take(name);
    if (value == nullptr || !value->is_array() || value->size() > kMaxPaths) {
      return Refuse(name, absl::StrCat("must be a list of at most ", kMaxPaths, " strings"));
    }
    std::vector<std::string> texts;
    for (const json& entry : *value) {
      if (!entry.is_string()) return Refuse(name, "must hold strings");
      texts.push_back(entry.get<std::string>());
    }
    return texts;
  }

  absl::StatusOr<std::vector<std::string>> Paths(const char* name) {
    MTMC_ASSIGN_OR_RETURN(std::vector<std::string> paths, Texts(name));
    for (const std::string& path : paths) {
      if (!IsCleanPath(path)) return Refuse(name, "must hold clean absolute paths");
    }
    return paths;
  }

  // OK if every field was taken.
  absl::Status Finish() const {
    for (const auto& [name, value] : object_.items()) {
      if (!taken_.contains(name)) return Refuse("a field", "is unknown: " + name);
    }
    return absl::OkStatus();
  }

 private:
  const json* Take(const char* name) {
    const auto found = object_.find(name);
    if (found == object_.end()) return nullptr;
    taken_.insert(name);
    return &*found;
  }

  const json& object_;
  std::set<std::string> taken_;
};

absl::StatusOr<PartyKind> ParseParty(const std::string& name) {
  for (const PartyKind party : {PartyKind::kReference, PartyKind::kBuilder, PartyKind::kRunner}) {
    if (NameOf(party) == name) return party;
  }
  return Refuse("party", "must be reference, builder or runner");
}

absl::StatusOr<MechanismSet> ParseMechanisms(const std::vector<std::string>& names) {
  MechanismSet mechanisms;
  for (const std::string& name : names) {
    const auto mechanism = FindMechanism(name);
    if (!mechanism) return Refuse("mechanisms", "must hold names of mechanisms");
    mechanisms.insert(*mechanism);
  }
  return mechanisms;
}

absl::StatusOr<LaunchSpec> FromJson(const json& object) {
  if (!object.is_object()) return Refuse("the specification", "must be an object");
  Fields fields(object);
  LaunchSpec spec;
  Rights& rights = spec.rights;
  MTMC_ASSIGN_OR_RETURN(const std::string party, fields.Text("party"));
  MTMC_ASSIGN_OR_RETURN(rights.party, ParseParty(party));
  MTMC_ASSIGN_OR_RETURN(const auto mechanisms, fields.Texts("mechanisms"));
  MTMC_ASSIGN_OR_RETURN(spec.mechanisms, ParseMechanisms(mechanisms));
  MTMC_ASSIGN_OR_RETURN(spec.working_folder, fields.Path("working_folder"));
  MTMC_ASSIGN_OR_RETURN(rights.readable, fields.Paths("readable"));
  MTMC_ASSIGN_OR_RETURN(rights.writable, fields.Paths("writable"));
  MTMC_ASSIGN_OR_RETURN(rights.devices, fields.Paths("devices"));
  MTMC_ASSIGN_OR_RETURN(rights.scratch_bytes, fields.Number("scratch_bytes"));
  MTMC_ASSIGN_OR_RETURN(const uint64_t num_descriptors, fields.Number("num_descriptors"));
  if (num_descriptors > kMaxDescriptors) return Refuse("num_descriptors", "is too large");
  rights.num_descriptors = static_cast<int>(num_descriptors);
  MTMC_ASSIGN_OR_RETURN(rights.limits.open_files, fields.Number("open_files"));
  MTMC_ASSIGN_OR_RETURN(rights.limits.processes, fields.Number("processes"));
  MTMC_ASSIGN_OR_RETURN(rights.limits.file_bytes, fields.Number("file_bytes"));
  MTMC_ASSIGN_OR_RETURN(rights.limits.address_bytes, fields.Number("address_bytes"));
  MTMC_RETURN_IF_ERROR(fields.Finish());
  return spec;
}

}  // namespace

std::string ToJson(const LaunchSpec& spec) {
  const Rights& rights = spec.rights;
  json mechanisms = json::array();
  for (const Mechanism mechanism : spec.mechanisms) {
    mechanisms.push_back(std::string(NameOf(mechanism)));
  }
  const json object = {{"party", NameOf(rights.party)},
                       {"mechanisms", std::move(mechanisms)},
                       {"working_folder", spec.working_folder},
                       {"readable", rights.readable},
                       {"writable", rights.writable},
                       {"devices", rights.devices},
                       {"scratch_bytes", rights.scratch_bytes},
                       {"num_descriptors", static_cast<uint64_t>(rights.num_descriptors)},
                       {"open_files", rights.limits.open_files},
                       {"processes", rights.limits.processes},
                       {"file_bytes", rights.limits.file_bytes},
                       {"address_bytes", rights.limits.address_bytes}};
  // A path may be any bytes; one that is not UTF-8 is refused by the parser.
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<LaunchSpec> ParseLaunchSpec(std::string_view text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) return Refuse("the specification", "is not JSON");
  return FromJson(object);
}

}  // namespace mtmc::worker
