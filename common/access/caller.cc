// SPDX-License-Identifier: Apache-2.0
#include "common/access/caller.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/string_view.h"
#include "common/rpc/gate.h"

namespace mtmc::access {

std::optional<Identity> FindCaller(const grpc::ServerContextBase& context) {
  std::string name = rpc::CallerOf(context);
  if (name.empty()) return std::nullopt;
  return Identity{.name = std::move(name), .grants = ReadGrants(rpc::CallerNoteOf(context))};
}

std::string WriteGrants(const std::vector<Grant>& grants) {
  std::string text;
  for (const Grant& grant : grants) {
    absl::StrAppend(&text, base::ToAbsl(RoleName(grant.role)), " ", grant.project, "\n");
  }
  return text;
}

std::vector<Grant> ReadGrants(const std::string& text) {
  std::vector<Grant> grants;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    const auto role = FindRole(words[0]);
    if (role && words.size() == 2) grants.push_back({.role = *role, .project = words[1]});
  }
  return grants;
}

}  // namespace mtmc::access
