// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::access {

// What somebody may do in a project. A viewer reads; a submitter reads and makes jobs; an
// administrator does everything. A worker is a machine of the fleet: it takes leases and
// reads artifacts, and is no more than that.
enum class Role { kViewer, kSubmitter, kWorker, kAdministrator };

// All of them.
inline constexpr Role kRoles[] = {Role::kViewer, Role::kSubmitter, Role::kWorker,
                                  Role::kAdministrator};

// `viewer`, `submitter`, `worker` or `administrator`.
std::string_view RoleName(Role role);
std::optional<Role> FindRole(std::string_view name);

// Whether who has `role` may do what takes `least`.
bool Includes(Role role, Role least);

// Stands for every project.
inline constexpr std::string_view kAllProjects = "*";

// A role in one project.
struct Grant {
  Role role = Role::kViewer;
  // The project's id, or kAllProjects.
  std::string project;
};

// Who calls. A value.
struct Identity {
  // As the administrator calls it, for the audit log.
  std::string name;
  std::vector<Grant> grants;
};

// Whether it is a machine of the fleet: a worker, and no more than that anywhere.
bool IsMachine(const Identity& identity);

}  // namespace mtmc::access
