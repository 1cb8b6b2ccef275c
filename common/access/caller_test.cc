// SPDX-License-Identifier: Apache-2.0
#include "common/access/caller.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::access {
namespace {

std::vector<std::pair<Role, std::string>> Read(const std::string& text) {
  std::vector<std::pair<Role, std::string>> grants;
  for (const Grant& grant : ReadGrants(text)) grants.emplace_back(grant.role, grant.project);
  return grants;
}

TEST_CASE("Grants are the same after their way to the method", "[access]") {
  const std::vector<Grant> grants = {{Role::kViewer, "vision"},
                                     {Role::kSubmitter, "speech"},
                                     {Role::kWorker, "*"},
                                     {Role::kAdministrator, "*"}};

  CHECK(Read(WriteGrants(grants)) ==
        std::vector<std::pair<Role, std::string>>{{Role::kViewer, "vision"},
                                                  {Role::kSubmitter, "speech"},
                                                  {Role::kWorker, "*"},
                                                  {Role::kAdministrator, "*"}});
  CHECK(Read(WriteGrants({})).empty());
}

TEST_CASE("A line that is no grant grants nothing", "[access]") {
  CHECK(Read("").empty());
  CHECK(Read("viewer\n\n viewer p\nviewer p q\nowner p\nviewer *\n").size() == 1);
}

}  // namespace
}  // namespace mtmc::access
