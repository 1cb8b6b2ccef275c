// SPDX-License-Identifier: Apache-2.0
#include "client/cli/coordinator_check.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/rpc/error.h"

namespace mtmc::client {
namespace {

struct Remedy {
  absl::string_view reason;
  absl::string_view text;
};

// The first whose reason the answer begins with.
constexpr Remedy kRemedies[] = {
    {"COORDINATOR_UNREACHABLE",
     "is it the coordinator's --listen, and open in the firewall? With TLS: name its authority by "
     "--tls-ca, and a name that its certificate has; a certificate of your own where it asks for "
     "one"},
    {"TOKEN_MISSING", "give the file of a token, --token-file or MTMC_TOKEN_FILE"},
    {"TOKEN_EXPIRED", "have the token renewed by who gave it"},
    {"TOKEN_INVALID", "have the line of this token added to the coordinator's --tokens"},
    {"TOKEN_IN_CLEAR", "name the authority of the coordinator's certificate, --tls-ca"},
    {"TOKEN_FILE_INVALID", "name a file whose first line is the token"},
    {"TLS_", "correct the file that the message names"},
};

}  // namespace

CoordinatorCheck JudgeAnswer(const std::string& endpoint, const absl::Status& answer) {
  if (answer.ok()) return {true, absl::StrCat(endpoint, " answers"), ""};
  const std::string reason = rpc::ErrorReason(answer);
  if (reason == "ROLE_MISSING") {
    return {true, absl::StrCat(endpoint, " answers, and knows the token"), ""};
  }
  CoordinatorCheck check;
  check.detail = absl::StrCat(endpoint, ": ", std::string(answer.message()));
  if (!reason.empty()) absl::StrAppend(&check.detail, " [", reason, "]");
  check.remedy = "look at the coordinator's log and /readyz";
  for (const Remedy& remedy : kRemedies) {
    if (!absl::StartsWith(reason, remedy.reason)) continue;
    check.remedy = std::string(remedy.text);
    break;
  }
  return check;
}

}  // namespace mtmc::client
