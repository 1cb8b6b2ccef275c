// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/resource_name.h"

#include <cctype>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/id.h"
#include "common/rpc/error.h"

namespace mtmc::coordinator {
namespace {

// `pattern` as `projects/*/jobs/*`: literal segments, and * for an id.
absl::Status Check(const std::string& name, const std::string& pattern) {
  const std::vector<std::string> segments = absl::StrSplit(name, '/');
  const std::vector<std::string> expected = absl::StrSplit(pattern, '/');
  bool matches = segments.size() == expected.size();
  for (size_t i = 0; matches && i < expected.size(); ++i) {
    matches = expected[i] == "*" ? base::IsResourceId(segments[i]) : segments[i] == expected[i];
  }
  if (matches) return absl::OkStatus();
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_NAME",
                        absl::StrCat("name \"", absl::CHexEscape(name), "\" is not of the form ",
                                     pattern, " with ids of lower-case letters, digits and -"));
}

}  // namespace

absl::Status CheckProjectName(const std::string& name) { return Check(name, "projects/*"); }

absl::Status CheckJobName(const std::string& name) { return Check(name, "projects/*/jobs/*"); }

absl::Status CheckCandidateName(const std::string& name) {
  return Check(name, "projects/*/jobs/*/candidates/*");
}

absl::Status CheckRecordName(const std::string& name) {
  return Check(name, "projects/*/records/*");
}

absl::Status CheckQuotaName(const std::string& name) { return Check(name, "projects/*/quota"); }

absl::Status CheckWorkerName(const std::string& name) { return Check(name, "workers/*"); }

absl::Status CheckResourceId(const std::string& field, const std::string& id) {
  if (id.empty() || base::IsResourceId(id)) return absl::OkStatus();
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_NAME",
                        absl::StrCat(field, " \"", absl::CHexEscape(id),
                                     "\" must match [a-z]([a-z0-9-]{0,61}[a-z0-9])?"));
}

absl::Status CheckRequestId(const std::string& request_id) {
  if (request_id.empty()) return absl::OkStatus();
  bool is_uuid = request_id.size() == 36;
  for (size_t i = 0; is_uuid && i < request_id.size(); ++i) {
    const bool is_hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    is_uuid = is_hyphen ? request_id[i] == '-'
                        : std::isxdigit(static_cast<unsigned char>(request_id[i])) != 0;
  }
  if (is_uuid) return absl::OkStatus();
  return rpc::MakeError(
      absl::StatusCode::kInvalidArgument, "INVALID_REQUEST_ID",
      absl::StrCat("request_id \"", absl::CHexEscape(request_id), "\" is not a UUID"));
}

}  // namespace mtmc::coordinator
