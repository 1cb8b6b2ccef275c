// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/access/role.h"

namespace grpc {
class ServerContextBase;
}

namespace mtmc::access {

// Who makes the call of `context` and what they may do, as the Guard of its server knows
// them: of a token or JWT as it was when the call came. None on a server without a guard,
// where nobody is asked.
std::optional<Identity> FindCaller(const grpc::ServerContextBase& context);

// How grants travel from the guard to the method: `ROLE PROJECT` a line. What is no such
// line grants nothing.
std::string WriteGrants(const std::vector<Grant>& grants);
std::vector<Grant> ReadGrants(const std::string& text);

}  // namespace mtmc::access
