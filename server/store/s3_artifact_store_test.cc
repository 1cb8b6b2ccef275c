// SPDX-License-Identifier: Apache-2.0
//
// What artifacts in S3 keep besides the contract, while their server comes to harm.
#include "server/store/s3_artifact_store.h"

#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/store/artifact_makers.h"

namespace mtmc::store {
namespace {

using testing::IsOk;
using testing::StatusIs;

const s3::Client::Options kQuick{.connect_timeout = absl::Milliseconds(500),
                                 .stall_timeout = absl::Seconds(1),
                                 .attempt_timeout = absl::Seconds(1),
                                 .total = absl::Seconds(1),
                                 .first_pause = absl::Milliseconds(10)};

// Its own server, which may be killed.
struct Harmed {
  absl::StatusOr<s3::S3Server> server = s3::S3Server::Start();
  metrics::Registry registry{"test"};

  bool IsThere() const {
    if (!absl::IsNotFound(server.status())) return true;
    std::cout << "SKIPPED: " << server.status().message() << std::endl;
    return false;
  }

  absl::StatusOr<std::unique_ptr<S3ArtifactStore>> Open(s3::Client::Options options = kQuick) {
    REQUIRE_THAT(server.status(), IsOk());
    if (options.environment("AWS_ACCESS_KEY_ID").value_or("").empty()) {
      options.environment = server->environment();
    }
    auto client = s3::Client::Create(server->settings("p/"), options, registry);
    REQUIRE_THAT(client.status(), IsOk());
    return S3ArtifactStore::Open(
        *std::move(client),
        {.probe_interval = absl::Milliseconds(50), .probe_interval_away = absl::Milliseconds(50)});
  }

  double Requests(const std::string& method, const std::string& code) {
    return registry.MakeCounter("mtmc_s3_requests_total", "", {{"method", method}, {"code", code}})
        .value();
  }
};

// Waits until it is ready, or until it is not.
bool AwaitReady(ArtifactStore& store, bool is_ready) {
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (absl::Now() < deadline) {
    if (store.CheckReady().ok() == is_ready) return true;
    absl::Mutex mu;
    absl::CondVar never;
    const absl::MutexLock lock(&mu);
    never.WaitWithTimeout(&mu, absl::Milliseconds(10));
  }
  return false;
}

std::string Blob(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  return bytes;
}

}  // namespace

TEST_CASE("S3ArtifactStore sends one blob once, small ones in one request", "[store]") {
  Harmed harmed;
  if (!harmed.IsThere()) return;
  const auto store = *harmed.Open();
  for (int i = 0; i < 3; ++i) REQUIRE_THAT(store->Put("hello").status(), IsOk());
  CHECK(harmed.Requests("PUT", "200") == 1);

  for (int i = 0; i < 3; ++i) REQUIRE_THAT(store->Put(Blob(20'000'000)).status(), IsOk());

  // Three parts, between a beginning and an end.
  CHECK(harmed.Requests("PUT", "200") == 4);
  CHECK(harmed.Requests("POST", "200") == 2);
}

TEST_CASE("S3ArtifactStore survives the death of its server in an upload", "[store]") {
  Harmed harmed;
  if (!harmed.IsThere()) return;
  const auto store = *harmed.Open();
  const std::string bytes = Blob(20'000'000);
  {
    const auto writer = *store->CreateWriter(DigestOf(bytes));
    REQUIRE_THAT(writer->Append(bytes.substr(0, 10'000'000)), IsOk());
    harmed.server->Kill();

    const absl::Status status = writer->Append(bytes.substr(10'000'000));

    CHECK_THAT(status, StatusIs(absl::StatusCode::kUnavailable, "try again"));
    CHECK(rpc::ErrorReason(status) == "S3_UNAVAILABLE");
  }
  CHECK_THAT(store->Contains(DigestOf(bytes)).status(), StatusIs(absl::StatusCode::kUnavailable));
  REQUIRE_THAT(harmed.server->StartAgain(), IsOk());

  // Nothing of it is taken for the blob.
  CHECK_FALSE(*store->Contains(DigestOf(bytes)));
  REQUIRE_THAT(store->Put(bytes).status(), IsOk());
  CHECK((*ReadWhole(*store, DigestOf(bytes), 20'000'000) == bytes));
}

TEST_CASE("S3ArtifactStore goes on by itself after a short absence of its server", "[store]") {
  Harmed harmed;
  if (!harmed.IsThere()) return;
  auto options = kQuick;
  options.total = absl::Seconds(20);
  options.max_attempts = 100;
  const auto store = *harmed.Open(options);
  REQUIRE_THAT(store->Put("hello").status(), IsOk());
  harmed.server->Kill();
  std::jthread restarter([&] { CHECK_THAT(harmed.server->StartAgain(), IsOk()); });

  CHECK(*ReadWhole(*store, DigestOf("hello"), 5) == "hello");
}

TEST_CASE("S3ArtifactStore gives up on a server that does not answer", "[store]") {
  Harmed harmed;
  if (!harmed.IsThere()) return;
  const auto store = *harmed.Open();
  REQUIRE_THAT(store->Put("hello").status(), IsOk());
  harmed.server->Pause();
  const absl::Time start = absl::Now();

  const absl::Status status = ReadWhole(*store, DigestOf("hello"), 5).status();

  CHECK(rpc::ErrorReason(status) == "S3_UNAVAILABLE");
  CHECK(absl::Now() - start < absl::Seconds(6));
  CHECK(AwaitReady(*store, false));
  harmed.server->Resume();
  CHECK(AwaitReady(*store, true));
  CHECK(*ReadWhole(*store, DigestOf("hello"), 5) == "hello");
}

TEST_CASE("S3ArtifactStore opens without its server and is ready when that comes", "[store]") {
  Harmed harmed;
  if (!harmed.IsThere()) return;
  harmed.server->Kill();

  const auto store = harmed.Open();

  REQUIRE_THAT(store.status(), IsOk());
  CHECK_THAT((*store)->CheckReady(), StatusIs(absl::StatusCode::kUnavailable));
  REQUIRE_THAT(harmed.server->StartAgain(), IsOk());
  CHECK(AwaitReady(**store, true));
}

TEST_CASE("S3ArtifactStore does not open with a wrong secret or bucket", "[store]") {
  Harmed harmed;
  if (!harmed.IsThere()) return;
  auto options = kQuick;
  options.environment = [](const char*) -> std::optional<std::string> { return "wrong"; };
  CHECK(rpc::ErrorReason(harmed.Open(options).status()) == "S3_REFUSED");

  s3::Settings elsewhere = harmed.server->settings();
  elsewhere.bucket = "another";
  options.environment = harmed.server->environment();
  auto client = s3::Client::Create(elsewhere, options, harmed.registry);
  const absl::Status status = S3ArtifactStore::Open(*std::move(client), {}).status();
  CHECK(rpc::ErrorReason(status) == "S3_MISCONFIGURED");
  CHECK_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition, "another"));
}

}  // namespace mtmc::store
