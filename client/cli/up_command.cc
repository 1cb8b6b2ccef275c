// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "client/cli/commands.h"
#include "client/cli/interrupt.h"
#include "client/cli/output.h"
#include "common/base/shutdown_signal.h"
#include "common/base/status_macros.h"
#include "common/config/version.h"
#include "common/rpc/status.h"

namespace mtmc::client {
namespace {

// How often dead daemons are looked for.
constexpr absl::Duration kSupervision = absl::Seconds(1);

absl::StatusOr<ExitCode> Up(const UpOptions& options) {
  if (const auto running = Connect(options.common); running.ok()) {
    return rpc::MakeError(
        absl::StatusCode::kFailedPrecondition, "STACK_RUNNING",
        "a coordinator already serves at " + running->endpoint + "; use it, or stop it first");
  }
  LocalStack::Options stack_options = LocalStackOptions(options.stack);
  stack_options.listen = options.listen;
  MTMC_ASSIGN_OR_RETURN(const std::unique_ptr<LocalStack> stack,
                        LocalStack::Start(std::move(stack_options)));
  Table table({"daemon", "metrics"});
  for (const auto& [name, http] : stack->http_endpoints()) {
    table.AddRow({name, "http://" + http + "/metrics"});
  }
  table.Print(std::cout);
  std::cout << "\ncoordinator at " << Bold(stack->endpoint()) << "; Ctrl-C stops the stack\n"
            << "  export MTMC_ENDPOINT=" << stack->endpoint() << "\n"
            << std::flush;
  while (!WaitForInterrupt(kSupervision)) {
    for (const std::string& name : stack->Supervise()) {
      std::cerr << name << " had died and was started again\n";
    }
  }
  return kExitOk;
}

}  // namespace

ExitCode RunUp(const UpOptions& options) { return Finish(Up(options)); }

ExitCode RunVersion(const CommonOptions& options) {
  if (options.is_json) {
    std::cout << "{\"version\": \"" << config::Version() << "\"}\n";
  } else {
    std::cout << "mtmc " << config::Version() << "\n";
  }
  return kExitOk;
}

}  // namespace mtmc::client
