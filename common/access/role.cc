// SPDX-License-Identifier: Apache-2.0
#include "common/access/role.h"

#include <algorithm>

namespace mtmc::access {

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kViewer:
      return "viewer";
    case Role::kSubmitter:
      return "submitter";
    case Role::kWorker:
      return "worker";
    case Role::kAdministrator:
      return "administrator";
  }
  return "";
}

std::optional<Role> FindRole(std::string_view name) {
  for (const Role role : kRoles) {
    if (RoleName(role) == name) return role;
  }
  return std::nullopt;
}

bool Includes(Role role, Role least) {
  if (role == Role::kAdministrator || role == least) return true;
  return role == Role::kSubmitter && least == Role::kViewer;
}

bool IsMachine(const Identity& identity) {
  return !identity.grants.empty() &&
         std::all_of(identity.grants.begin(), identity.grants.end(),
                     [](const Grant& grant) { return grant.role == Role::kWorker; });
}

}  // namespace mtmc::access
