// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <nlohmann/json.hpp>

#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "common/access/token_table.h"
#include "common/base/status_macros.h"

namespace mtmc::client {
namespace {

absl::StatusOr<ExitCode> TokenCreate(const TokenOptions& options) {
  const access::Role role = access::FindRole(options.role).value_or(access::Role::kViewer);
  const std::string project =
      role == access::Role::kWorker ? std::string(access::kAllProjects) : options.common.project;
  const std::string token = access::MakeToken();
  const std::string line = access::TokenLine(options.name, role, project, token);
  // What the daemon would refuse is not handed out.
  MTMC_RETURN_IF_ERROR(access::TokenTable::Parse(line).status());
  if (options.common.is_json) {
    std::cout << nlohmann::ordered_json{{"token", token}, {"line", line}} << "\n";
  } else {
    std::cout << token << "\n" << std::flush;
    std::cerr << "for the file of --tokens; the token itself is not shown again:\n" << line << "\n";
  }
  return kExitOk;
}

}  // namespace

ExitCode RunTokenCreate(const TokenOptions& options) { return Finish(TokenCreate(options)); }

}  // namespace mtmc::client
