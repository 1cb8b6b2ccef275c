// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/impl/service_type.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/temp_dir.h"
#include "common/daemon/endpoints.h"
#include "common/daemon/exit_code.h"
#include "common/daemon/flags.h"
#include "common/daemon/tracing.h"
#include "common/metrics/metrics.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "common/trace/span.h"

namespace mtmc::daemon {
namespace {

using testing::IsOk;
using testing::StatusIs;

struct Parsed {
  std::optional<int> exit_code;
  Flags flags;
};

Parsed Parse(std::vector<std::string> arguments, Flags flags = {.listen = "127.0.0.1:1"}) {
  Parsed parsed{.flags = std::move(flags)};
  CLI::App app("Does nothing.", "mtmc-nothing");
  Declare(app, parsed.flags);
  arguments.insert(arguments.begin(), "mtmc-nothing");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  parsed.exit_code =
      ParseAndInitLogging(app, static_cast<int>(pointers.size()), pointers.data(), parsed.flags);
  return parsed;
}

TEST_CASE("Daemon flags take the place of their defaults", "[daemon]") {
  const Parsed parsed = Parse({"--http", "", "--ready-file", "r.json", "--log-level", "error"});

  CHECK(parsed.exit_code == std::nullopt);
  CHECK(parsed.flags.listen == "127.0.0.1:1");
  CHECK(parsed.flags.http.empty());
  CHECK(parsed.flags.ready_file == "r.json");
}

TEST_CASE("A daemon ends at once with the documented exit code", "[daemon]") {
  const auto [argument, expected] = GENERATE(table<const char*, int>({
      {"--version", kExitOk},
      {"--help", kExitOk},
      {"--listne=127.0.0.1:1", kExitUsage},
      {"--log-level=loud", kExitUsage},
      {"--log-format=xml", kExitUsage},
  }));
  CAPTURE(argument);

  CHECK(Parse({argument}).exit_code == expected);
}

TEST_CASE("A daemon without services has no --listen", "[daemon]") {
  CHECK(Parse({"--listen", "127.0.0.1:1"}, {}).exit_code == kExitUsage);
}

TEST_CASE("What is absent is unavailable, anything else is not", "[daemon]") {
  CHECK(Fail("no port", absl::UnavailableError("taken")) == kExitUnavailable);
  CHECK(Fail("no Python", absl::NotFoundError("none")) == kExitUnavailable);
  CHECK(Fail("broken", absl::InternalError("broken")) == kExitOther);
}

TEST_CASE("The ready file tells the addresses and the process", "[daemon]") {
  const auto folder = base::TempDir::Create();
  REQUIRE_THAT(folder.status(), IsOk());
  const std::string ready = folder->path() / "ready.json";
  metrics::Registry registry("nothing");
  grpc::Service service;

  const auto endpoints =
      Endpoints::Open({.listen = "127.0.0.1:0", .http = "127.0.0.1:0", .ready_file = ready},
                      registry, {.services = {{&service, "none"}}});

  REQUIRE_THAT(endpoints.status(), IsOk());
  CHECK((*endpoints)->grpc_address() != "127.0.0.1:0");
  const auto text = base::ReadFile(ready);
  REQUIRE_THAT(text.status(), IsOk());
  CHECK(*text == absl::StrCat("{\"grpc\":\"", (*endpoints)->grpc_address(), "\",\"http\":\"",
                              (*endpoints)->http_address(), "\",\"pid\":", ::getpid(), "}\n"));
}

TEST_CASE("Endpoints that are switched off have no address", "[daemon]") {
  metrics::Registry registry("nothing");

  const auto endpoints = Endpoints::Open({}, registry, {});

  REQUIRE_THAT(endpoints.status(), IsOk());
  CHECK((*endpoints)->grpc_address().empty());
  CHECK((*endpoints)->http_address().empty());
}

TEST_CASE("REST that other hosts would reach is refused, unless somebody says so", "[daemon]") {
  metrics::Registry registry("nothing");
  grpc::Service service;
  Flags flags{.listen = "127.0.0.1:0", .http = "0.0.0.0:0"};
  const Endpoints::Options served{.services = {{&service, "none"}},
                                  .rest_services = {"mtmc.v1.ArtifactService"}};

  const auto refused = Endpoints::Open(flags, registry, served);
  CHECK(rpc::ErrorReason(refused.status()) == "HTTP_INSECURE");
  flags.is_insecure_http = true;
  // It gets as far as the contract, of which this test has no service.
  const auto allowed = Endpoints::Open(flags, registry, served);
  CHECK(absl::StrContains(allowed.status().message(), "mtmc.v1.ArtifactService"));
}

TEST_CASE("Who is let in is asked only of those who have tokens", "[daemon]") {
  CHECK(Parse({"--audit-log", "a"}).exit_code == kExitUsage);
  CHECK(Parse({"--requests-per-second", "1"}).exit_code == kExitUsage);
  CHECK(Parse({"--tokens", "t", "--audit-log", "a"}).exit_code == std::nullopt);
  CHECK(Parse({"--jwt-keys", "k"}).exit_code == kExitUsage);
  CHECK(Parse({"--jwt-keys", "k", "--jwt-issuer", "i", "--audit-log", "a"}).exit_code ==
        std::nullopt);

  metrics::Registry registry("nothing");
  grpc::Service service;
  const auto refused = Endpoints::Open({.listen = "127.0.0.1:0", .tokens = "/nonexistent/tokens"},
                                       registry, {.services = {{&service, "none"}}});
  CHECK(rpc::ErrorReason(refused.status()) == "TOKENS_INVALID");
}

TEST_CASE("No ready file is left where a port is taken", "[daemon]") {
  const auto folder = base::TempDir::Create();
  REQUIRE_THAT(folder.status(), IsOk());
  const std::string ready = folder->path() / "ready.json";
  metrics::Registry registry("nothing");
  const auto first = Endpoints::Open({.http = "127.0.0.1:0"}, registry, {});
  REQUIRE_THAT(first.status(), IsOk());

  const auto second =
      Endpoints::Open({.http = (*first)->http_address(), .ready_file = ready}, registry, {});

  CHECK_THAT(second.status(), StatusIs(absl::StatusCode::kUnavailable, "in use"));
  CHECK_FALSE(std::filesystem::exists(ready));
}

TEST_CASE("A daemon without a collector traces nothing", "[daemon]") {
  metrics::Registry registry("nothing");
  const auto tracing = Tracing::Start({}, "mtmc-nothing", registry);

  REQUIRE_THAT(tracing.status(), IsOk());
  CHECK_FALSE(trace::IsTracing());
  CHECK(absl::StrContains(registry.Render(), "mtmc_trace_spans_total{outcome=\"dropped\"} 0"));
}

TEST_CASE("A daemon traces from start to end, whether its collector is there or not", "[daemon]") {
  metrics::Registry registry("nothing");
  {
    // Nothing listens at port 1.
    const auto tracing = Tracing::Start({.otlp_endpoint = "127.0.0.1:1"}, "mtmc-nothing", registry);
    REQUIRE_THAT(tracing.status(), IsOk());
    CHECK(trace::IsTracing());
    trace::Span::StartTrace("trial").End();
  }

  CHECK_FALSE(trace::IsTracing());
  CHECK(absl::StrContains(registry.Render(), "mtmc_trace_spans_total{outcome=\"dropped\"} 1"));
}

TEST_CASE("A daemon does not start with a collector that cannot be one", "[daemon]") {
  metrics::Registry registry("nothing");

  CHECK_THAT(Tracing::Start({.otlp_endpoint = "collector"}, "mtmc-nothing", registry).status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "must be HOST:PORT"));
}

}  // namespace
}  // namespace mtmc::daemon
