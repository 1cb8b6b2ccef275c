// SPDX-License-Identifier: Apache-2.0
#include "common/access/guard.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/temp_dir.h"
#include "common/rpc/error.h"
#include "common/testing/fake_clock.h"
#include "common/testing/status_matchers.h"
#include "mtmc/v1/job.pb.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::access {
namespace {

using testing::IsOk;
using Json = nlohmann::json;

// A guard that knows alice, a submitter of project vision, machines, which are workers, and
// carol, who runs a worker of her own as well.
struct Guarded {
  explicit Guarded(double requests_per_second = 0) {
    const std::string tokens = folder.path() / "tokens";
    REQUIRE_THAT(base::WriteFileAtomically(
                     tokens, TokenLine("alice", Role::kSubmitter, "vision", "mtmc_planted") + "\n" +
                                 TokenLine("machines", Role::kWorker, "*", "mtmc_machines") + "\n" +
                                 TokenLine("carol", Role::kWorker, "*", "mtmc_carol") + "\n" +
                                 TokenLine("carol", Role::kViewer, "vision", "mtmc_carol")),
                 IsOk());
    auto created = Guard::Create(
        {.token_file = tokens, .audit_log = audit, .requests_per_second = requests_per_second},
        clock);
    REQUIRE_THAT(created.status(), IsOk());
    guard = *std::move(created);
  }

  rpc::Gate::Decision Decide(std::vector<std::string_view> authorization,
                             std::string_view method = "CancelJob",
                             const std::string& name = "projects/vision/jobs/one") {
    v1::CancelJobRequest request;
    request.set_name(name);
    return guard->Decide({.service = "mtmc.v1.JobService",
                          .method = method,
                          .authorization = std::move(authorization),
                          .peer = "ipv4:10.0.0.7:1",
                          .request = &request});
  }

  // The lines of the audit log.
  std::vector<Json> Audit() const {
    std::vector<Json> lines;
    for (const auto line : absl::StrSplit(*base::ReadFile(audit), '\n', absl::SkipEmpty())) {
      lines.push_back(Json::parse(std::string(line)));
    }
    return lines;
  }

  const base::TempDir folder = *base::TempDir::Create();
  const std::string audit = folder.path() / "audit.jsonl";
  testing::FakeClock clock;
  std::unique_ptr<Guard> guard;
};

TEST_CASE("Only one bearer token that somebody has lets a call in", "[access]") {
  Guarded guarded;
  const auto reason = [&](std::vector<std::string_view> authorization) {
    return rpc::ErrorReason(guarded.Decide(std::move(authorization)).status);
  };

  CHECK(reason({"Bearer mtmc_planted"}).empty());
  CHECK(guarded.Decide({"Bearer mtmc_planted"}).caller_note == "submitter vision\n");
  CHECK(reason({"bearer mtmc_planted"}).empty());
  CHECK(reason({}) == "TOKEN_MISSING");
  CHECK(reason({""}) == "TOKEN_INVALID");
  CHECK(reason({"Bearer "}) == "TOKEN_INVALID");
  CHECK(reason({"mtmc_planted"}) == "TOKEN_INVALID");
  CHECK(reason({"Basic mtmc_planted"}) == "TOKEN_INVALID");
  CHECK(reason({"Bearer mtmc_planted2"}) == "TOKEN_INVALID");
  CHECK(reason({"Bearer mtmc_planted", "Bearer mtmc_planted"}) == "TOKEN_INVALID");
}

TEST_CASE("A method that no rule knows is closed, and so is a request that does not parse",
          "[access]") {
  Guarded guarded;

  CHECK(rpc::ErrorReason(guarded.Decide({"Bearer mtmc_planted"}, "Newest").status) ==
        "ROLE_MISSING");
  const auto decision = guarded.guard->Decide({.service = "mtmc.v1.JobService",
                                               .method = "CancelJob",
                                               .authorization = {"Bearer mtmc_planted"},
                                               .peer = "",
                                               .request = nullptr});
  CHECK(rpc::ErrorReason(decision.status) == "ROLE_MISSING");
}

TEST_CASE("Who changes something, or tries to, leaves one line", "[access]") {
  Guarded guarded;
  const auto allowed = guarded.Decide({"Bearer mtmc_planted"});
  allowed.on_end(absl::StatusCode::kNotFound);
  const auto refused = guarded.Decide({"Bearer mtmc_planted"}, "DeleteJob",
                                      "projects/speech/jobs/\xff"
                                      "two");
  refused.on_end(refused.status.code());
  CHECK_FALSE(guarded.Decide({"Bearer mtmc_planted"}, "GetJob").on_end);
  CHECK_FALSE(guarded.Decide({"Bearer wrong"}).on_end);

  const std::vector<Json> lines = guarded.Audit();

  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == Json{{"time", "2023-11-14T22:13:20+00:00"},
                         {"who", "alice"},
                         {"role", "submitter"},
                         {"method", "mtmc.v1.JobService/CancelJob"},
                         {"resource", "projects/vision/jobs/one"},
                         {"status", "NOT_FOUND"},
                         {"peer", "ipv4:10.0.0.7:1"}});
  CHECK(lines[1]["role"] == "");
  CHECK(lines[1]["status"] == "PERMISSION_DENIED");
  CHECK_FALSE(absl::StrContains(*base::ReadFile(guarded.audit), "planted"));
}

TEST_CASE("Of a worker's calls only those that are refused leave a line", "[access]") {
  Guarded guarded;
  const std::string tokens = guarded.folder.path() / "tokens";
  REQUIRE_THAT(
      base::WriteFileAtomically(tokens, TokenLine("machine-7", Role::kWorker, "*", "mtmc_machine")),
      IsOk());
  guarded.clock.Advance(absl::Seconds(2));
  v1::SynchronizeRequest request;
  request.mutable_worker()->set_name("workers/gpu-3");
  const auto decide = [&] {
    return guarded.guard->Decide({.service = "mtmc.v1.LeaseService",
                                  .method = "Synchronize",
                                  .authorization = {"Bearer mtmc_machine"},
                                  .peer = "ipv4:10.0.0.7:1",
                                  .request = &request});
  };
  CHECK(decide().caller == "machine-7");
  for (const absl::StatusCode code :
       {absl::StatusCode::kOk, absl::StatusCode::kUnavailable, absl::StatusCode::kPermissionDenied,
        absl::StatusCode::kCancelled}) {
    decide().on_end(code);
  }

  const std::vector<Json> lines = guarded.Audit();

  REQUIRE(lines.size() == 1);
  CHECK(lines[0]["who"] == "machine-7");
  CHECK(lines[0]["resource"] == "workers/gpu-3");
  CHECK(lines[0]["status"] == "PERMISSION_DENIED");
}

TEST_CASE("An audit log that was moved away begins anew", "[access]") {
  Guarded guarded;
  guarded.Decide({"Bearer mtmc_planted"}).on_end(absl::StatusCode::kOk);
  std::filesystem::rename(guarded.audit, guarded.audit + ".1");

  guarded.Decide({"Bearer mtmc_planted"}).on_end(absl::StatusCode::kOk);

  CHECK(guarded.Audit().size() == 1);
  const auto permissions = std::filesystem::status(guarded.audit).permissions();
  CHECK((permissions & std::filesystem::perms::others_read) == std::filesystem::perms::none);
}

TEST_CASE("Nobody's secret is in what a refusal says", "[access]") {
  Guarded guarded;
  for (const char* authorization :
       {"Bearer mtmc_planted", "mtmc_planted", "Bearer mtmc_planted2"}) {
    const auto status =
        guarded.Decide({authorization}, "DeleteJob", "projects/speech/jobs/two").status;
    CHECK_FALSE(status.ok());
    CHECK_FALSE(absl::StrContains(status.ToString(), "planted"));
  }
}

TEST_CASE("Who calls too often is told when to come again", "[access]") {
  Guarded guarded(/*requests_per_second=*/2);
  CHECK_THAT(guarded.Decide({"Bearer mtmc_planted"}).status, IsOk());
  CHECK_THAT(guarded.Decide({"Bearer mtmc_planted"}).status, IsOk());

  const absl::Status status = guarded.Decide({"Bearer mtmc_planted"}).status;

  CHECK(absl::IsResourceExhausted(status));
  CHECK(rpc::ErrorReason(status) == "REQUEST_RATE_EXCEEDED");
  CHECK(rpc::RetryDelay(status) == absl::Milliseconds(500));
  guarded.clock.Advance(absl::Milliseconds(500));
  CHECK_THAT(guarded.Decide({"Bearer mtmc_planted"}).status, IsOk());
}

TEST_CASE("Machines that share a token are not held to the rate of one caller", "[access]") {
  Guarded guarded(/*requests_per_second=*/2);

  for (int i = 0; i < 50; ++i) {
    // Let in by its token; what it may do is another question.
    CHECK(rpc::ErrorReason(guarded.Decide({"Bearer mtmc_machines"}).status) == "ROLE_MISSING");
  }
}

TEST_CASE("Who is more than a machine somewhere is held to the rate everywhere", "[access]") {
  Guarded guarded(/*requests_per_second=*/2);
  const auto reason = [&] {
    return rpc::ErrorReason(guarded.Decide({"Bearer mtmc_carol"}).status);
  };
  CHECK(reason() == "ROLE_MISSING");
  CHECK(reason() == "ROLE_MISSING");

  CHECK(reason() == "REQUEST_RATE_EXCEEDED");
}

}  // namespace
}  // namespace mtmc::access
