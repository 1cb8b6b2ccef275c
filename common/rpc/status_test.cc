// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/status.h"

#include <grpcpp/support/status.h>

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "absl/strings/cord.h"
#include "common/testing/status_matchers.h"

namespace mtmc::rpc {
namespace {

using testing::IsOk;
using testing::StatusIs;

TEST_CASE("An error keeps its reason on the way through gRPC", "[rpc]") {
  const absl::Status error = MakeError(absl::StatusCode::kNotFound, "JOB_NOT_FOUND", "no job \"x\"",
                                       {{"job", "projects/p/jobs/x"}});

  const absl::Status returned = FromGrpc(ToGrpc(error));

  CHECK_THAT(returned, StatusIs(absl::StatusCode::kNotFound, "no job \"x\""));
  CHECK(ErrorReason(returned) == "JOB_NOT_FOUND");
  CHECK(ErrorMetadata(returned) ==
        std::map<std::string, std::string>{{"job", "projects/p/jobs/x"}});
}

TEST_CASE("Foreign payloads survive gRPC", "[rpc]") {
  absl::Status error = absl::UnavailableError("gone");
  error.SetPayload("type.googleapis.com/google.rpc.RetryInfo", absl::Cord("bytes"));

  CHECK(FromGrpc(ToGrpc(error)) == error);
}

TEST_CASE("An error without details has no reason", "[rpc]") {
  const absl::Status error = absl::InternalError("bug");

  CHECK(ToGrpc(error).error_details().empty());
  CHECK(ErrorReason(FromGrpc(ToGrpc(error))).empty());
}

TEST_CASE("Details that do not parse leave code and message", "[rpc]") {
  const absl::Status error = FromGrpc({grpc::StatusCode::ABORTED, "again", "\377\377"});

  CHECK_THAT(error, StatusIs(absl::StatusCode::kAborted, "again"));
}

TEST_CASE("OK stays OK", "[rpc]") { CHECK_THAT(FromGrpc(ToGrpc(absl::OkStatus())), IsOk()); }

}  // namespace
}  // namespace mtmc::rpc
