// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/access/role.h"

namespace google::protobuf {
class Message;
}

namespace mtmc::access {

// What one method of the contract takes.
struct Rule {
  // Where the caller must have its role.
  enum class Scope {
    // In the project that the request's field `resource_field` names.
    kProject,
    // In any project: the resource belongs to none.
    kAnyProject,
    // In every project: what is done concerns all of them.
    kEveryProject,
  };

  // `mtmc.v1.JobService` and `GetJob`.
  std::string_view service;
  std::string_view method;
  Role least = Role::kAdministrator;
  // Workers may call it as well.
  bool allows_worker = false;
  Scope scope = Scope::kEveryProject;
  // Field of the request with the resource's name, as `name` or `worker.name`; empty if it
  // has none.
  std::string_view resource_field;
  // Whether the call is written to the audit log.
  bool is_audited = false;
  // Whether it is if it was refused: for Synchronize, which each worker repeats all the time.
  bool is_refusal_audited = false;
};

// One rule for each method of the contract; a method without one is closed to all.
const std::vector<Rule>& Rules();

// Null if there is none.
const Rule* FindRule(std::string_view service, std::string_view method);

// The resource that `request` names by the rule's field; empty without one. `request` may
// be null.
std::string ResourceOf(const Rule& rule, const google::protobuf::Message* request);

// The project of a resource name, as `p` of `projects/p/jobs/j`; empty if it has none.
std::string ProjectOf(std::string_view resource);

// The grant by which `identity` may do what `rule` says to `resource`; null if none does.
const Grant* FindGrant(const Identity& identity, const Rule& rule, std::string_view resource);

}  // namespace mtmc::access
