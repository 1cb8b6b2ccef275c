// SPDX-License-Identifier: Apache-2.0
#include "client/cli/coordinator_check.h"

#include <catch2/catch.hpp>

#include "common/rpc/error.h"

namespace mtmc::client {
namespace {

CoordinatorCheck CheckOf(const std::string& reason) {
  return JudgeAnswer("coordinators.example:50151",
                     rpc::MakeError(absl::StatusCode::kUnauthenticated, reason, "it says no"));
}

}  // namespace

TEST_CASE("Doctor finds nothing wrong with a coordinator that answers", "[cli]") {
  CHECK(JudgeAnswer("a:1", absl::OkStatus()).is_present);
  // The token of a worker may not list workers.
  CHECK(CheckOf("ROLE_MISSING").is_present);
  CHECK(CheckOf("ROLE_MISSING").remedy.empty());
}

TEST_CASE("Doctor says what to do for each way in which a coordinator refuses", "[cli]") {
  const auto [reason, word] = GENERATE(table<std::string, std::string>({
      {"COORDINATOR_UNREACHABLE", "--listen"},
      {"TOKEN_MISSING", "MTMC_TOKEN_FILE"},
      {"TOKEN_INVALID", "--tokens"},
      {"TOKEN_IN_CLEAR", "--tls-ca"},
      {"TLS_FILE_INVALID", "the message names"},
      {"STORE_UNAVAILABLE", "/readyz"},
  }));

  const CoordinatorCheck check = CheckOf(reason);

  CHECK_FALSE(check.is_present);
  CHECK(check.detail == "coordinators.example:50151: it says no [" + reason + "]");
  CHECK_THAT(check.remedy, Catch::Contains(word));
}

}  // namespace mtmc::client
