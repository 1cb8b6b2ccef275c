// SPDX-License-Identifier: Apache-2.0
#include "client/cli/checks_view.h"

#include "absl/strings/str_format.h"

namespace mtmc::client {

void PrintChecks(const v1::VerificationSummary& checks, std::ostream& out) {
  if (checks.timed_executions() > 0) {
    out << absl::StrFormat("  %d executions timed, %d of them checked, %d on inputs never seen\n",
                           checks.timed_executions(), checks.checked_executions(),
                           checks.fresh_executions());
  }
  if (checks.fresh_slowdown() > 0) {
    out << absl::StrFormat(
        "  it takes %.2f times as long on inputs never seen, so its times were multiplied by "
        "that\n",
        checks.fresh_slowdown());
  }
}

}  // namespace mtmc::client
