// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/manifest.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "google/protobuf/util/json_util.h"

namespace mtmc::worker {
namespace {

using Json = nlohmann::json;

absl::StatusOr<std::string> TextOf(const std::string& key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return absl::InvalidArgumentError(absl::StrCat("\"", key, "\" is not a text"));
}

absl::StatusOr<v1::Precision> ParsePrecision(const std::string& text) {
  v1::Precision precision;
  if (!v1::Precision_Parse(absl::StrCat("PRECISION_", absl::AsciiStrToUpper(text)), &precision)) {
    return absl::InvalidArgumentError(absl::StrCat("there is no precision class \"", text, "\""));
  }
  return precision;
}

absl::Status SetCalls(const Json& value, ManifestEntry& entry) {
  if (!value.is_array()) return absl::InvalidArgumentError("\"allowed_calls\" is not a list");
  for (const Json& call : value) {
    MTMC_ASSIGN_OR_RETURN(std::string name, TextOf("allowed_calls", call));
    entry.allowed_calls.push_back(std::move(name));
  }
  return absl::OkStatus();
}

absl::Status SetFixed(const Json& value, ManifestEntry& entry) {
  if (!value.is_array()) return absl::InvalidArgumentError("\"fixed\" is not a list");
  for (const Json& each : value) {
    MTMC_ASSIGN_OR_RETURN(std::string name, TextOf("fixed", each));
    entry.problem.add_fixed(std::move(name));
  }
  return absl::OkStatus();
}

absl::Status SetOptions(const Json& value, ManifestEntry& entry) {
  const auto status = google::protobuf::util::JsonStringToMessage(value.dump(), &entry.options);
  if (status.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"options\" are not EvaluationOptions: ", status.message().as_string()));
}

absl::Status SetField(const std::string& key, const Json& value, ManifestEntry& entry) {
  if (key == "allowed_calls") return SetCalls(value, entry);
  if (key == "options") return SetOptions(value, entry);
  if (key == "fixed") return SetFixed(value, entry);
  if (key == "nonfinite" && value.is_boolean()) {
    entry.problem.set_nonfinite(value.get<bool>());
    return absl::OkStatus();
  }
  if (key == "seed" && value.is_number_integer()) {
    entry.problem.set_seed(value.get<int64_t>());
    return absl::OkStatus();
  }
  if (key == "randomize_identity_parameters" && value.is_boolean()) {
    entry.problem.set_randomize_identity_parameters(value.get<bool>());
    return absl::OkStatus();
  }
  MTMC_ASSIGN_OR_RETURN(std::string text, TextOf(key, value));
  if (key == "problem") {
    entry.problem_path = std::move(text);
  } else if (key == "program") {
    entry.program_path = std::move(text);
  } else if (key == "name") {
    entry.name = std::move(text);
  } else if (key == "precision") {
    MTMC_ASSIGN_OR_RETURN(const v1::Precision precision, ParsePrecision(text));
    entry.problem.set_precision(precision);
  } else {
    return absl::InvalidArgumentError(absl::StrCat("\"", key, "\" is not known"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ManifestEntry> ParseLine(const std::string& line) {
  const Json json = Json::parse(line, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("it is not a JSON object");
  ManifestEntry entry;
  for (const auto& [key, value] : json.items()) {
    MTMC_RETURN_IF_ERROR(SetField(key, value, entry));
  }
  if (entry.problem_path.empty()) return absl::InvalidArgumentError("\"problem\" is missing");
  if (entry.program_path.empty()) return absl::InvalidArgumentError("\"program\" is missing");
  if (entry.name.empty()) {
    entry.name = std::filesystem::path(entry.program_path).filename().string();
  }
  entry.problem.set_display_name(std::filesystem::path(entry.problem_path).stem().string());
  return entry;
}

}  // namespace

absl::StatusOr<std::vector<ManifestEntry>> ParseManifest(std::string_view text) {
  std::vector<ManifestEntry> entries;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(base::ToAbsl(text), '\n')) {
    ++number;
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    auto entry = ParseLine(std::string(line));
    if (!entry.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", entry.status().message()));
    }
    entries.push_back(*std::move(entry));
  }
  return entries;
}

}  // namespace mtmc::worker
