// SPDX-License-Identifier: Apache-2.0
#include "common/access/token_table.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/temp_dir.h"
#include "common/rpc/error.h"
#include "common/testing/fake_clock.h"
#include "common/testing/status_matchers.h"

namespace mtmc::access {
namespace {

using testing::IsOk;

TEST_CASE("A token has the grants of all its lines", "[access]") {
  const auto table = TokenTable::Parse(
      absl::StrCat("# who role project hash\n\n", TokenLine("alice", Role::kViewer, "speech", "t1"),
                   "\n  ", TokenLine("alice", Role::kSubmitter, "vision", "t1"), "\r\n",
                   TokenLine("machines", Role::kWorker, "*", "t2")));

  REQUIRE_THAT(table.status(), IsOk());
  REQUIRE(table->identities.size() == 2);
  for (const auto& [hash, identity] : table->identities) {
    CHECK(identity.grants.size() == (identity.name == "alice" ? 2 : 1));
  }
}

TEST_CASE("A line at fault is told by its number, and not shown", "[access]") {
  const std::string hash(64, 'a');
  const std::string line = GENERATE_COPY(
      std::string("mtmc_planted"), "alice viewer vision mtmc_planted",
      "alice viewer mtmc_planted " + hash + " more", "alice mtmc_planted vision " + hash,
      "machines worker mtmc_planted " + hash, "alice viewer vision " + std::string(64, 'A'),
      "mtmc_planted viewer vision " + hash);

  const absl::Status status = TokenTable::Parse("bob viewer vision " + hash + "\n" + line).status();

  CAPTURE(line);
  CHECK(rpc::ErrorReason(status) == "TOKENS_INVALID");
  CHECK(absl::StrContains(status.message(), "line 2 "));
  CHECK_FALSE(absl::StrContains(status.message(), "planted"));
}

TEST_CASE("Tokens are new each time, and nothing that a header cannot carry", "[access]") {
  const std::string token = MakeToken();
  CHECK(token.size() == 5 + 64);
  CHECK(token.starts_with("mtmc_"));
  CHECK(token != MakeToken());
}

TEST_CASE("A token file that changes counts within a second; a bad one does not", "[access]") {
  const auto folder = base::TempDir::Create();
  REQUIRE_THAT(folder.status(), IsOk());
  const std::string path = folder->path() / "tokens";
  const auto write = [&path](const std::string& text) {
    REQUIRE_THAT(base::WriteFileAtomically(path, text), IsOk());
  };
  testing::FakeClock clock;
  CHECK(rpc::ErrorReason(TokenFile::Open(path, clock).status()) == "TOKENS_INVALID");
  write(TokenLine("alice", Role::kViewer, "vision", "first"));
  const auto file = TokenFile::Open(path, clock);
  REQUIRE_THAT(file.status(), IsOk());
  REQUIRE((*file)->Find("first"));
  CHECK((*file)->Find("first")->name == "alice");

  write(TokenLine("alice", Role::kViewer, "vision", "second"));
  CHECK((*file)->Find("first"));
  clock.Advance(absl::Seconds(1));
  CHECK_FALSE((*file)->Find("first"));
  CHECK((*file)->Find("second"));

  write("nonsense");
  clock.Advance(absl::Seconds(1));
  CHECK((*file)->Find("second"));

  // Nobody is let in by a file that is empty.
  write("");
  clock.Advance(absl::Seconds(1));
  CHECK_FALSE((*file)->Find("second"));
}

}  // namespace
}  // namespace mtmc::access
