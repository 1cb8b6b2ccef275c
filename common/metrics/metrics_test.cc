// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/metrics.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/metrics/http_endpoint.h"
#include "common/rpc/error.h"
#include "common/testing/socket_client.h"
#include "common/testing/status_matchers.h"

namespace mtmc::metrics {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using testing::Exchange;
using testing::HttpGet;
using testing::IsOk;

std::unique_ptr<HttpEndpoint> Serve(Registry& registry, HttpEndpoint::Options options = {}) {
  auto endpoint = HttpEndpoint::Create(registry, std::move(options));
  REQUIRE_THAT(endpoint.status(), IsOk());
  return *std::move(endpoint);
}

TEST_CASE("Series of one name and labels are one series", "[metrics]") {
  Registry registry("test");
  registry.MakeCounter("mtmc_trials_total", "Trials.", {{"outcome", "ok"}}).Increment();
  registry.MakeCounter("mtmc_trials_total", "Trials.", {{"outcome", "ok"}}).Increment(2);

  CHECK_THAT(registry.Render(), Contains("mtmc_trials_total{outcome=\"ok\"} 3"));
}

TEST_CASE("A gauge that was removed begins anew", "[metrics]") {
  Registry registry("test");
  registry.MakeGauge("mtmc_best_ratio", "Best.", {{"problem", "p"}}).Set(3);
  registry.RemoveGauge("mtmc_best_ratio", "Best.", {{"problem", "p"}});
  CHECK_THAT(registry.Render(), !Contains("mtmc_best_ratio{"));
  registry.MakeGauge("mtmc_best_ratio", "Best.", {{"problem", "p"}}).Set(2);

  CHECK_THAT(registry.Render(), Contains("mtmc_best_ratio{problem=\"p\"} 2"));
}

TEST_CASE("A registry tells version and memory of the process", "[metrics]") {
  const std::string text = Registry("mtmc-test").Render();

  CHECK_THAT(text, Contains("mtmc_build_info{program=\"mtmc-test\",version=\""));
  CHECK_THAT(text, Contains("process_resident_memory_bytes "));
}

TEST_CASE("A histogram counts into its buckets", "[metrics]") {
  Registry registry("test");
  registry.MakeHistogram("mtmc_wait_seconds", "Waits.", {1, 2}).Observe(1.5);

  CHECK_THAT(registry.Render(), Contains("mtmc_wait_seconds_bucket{le=\"2\"} 1"));
}

TEST_CASE("The endpoint serves the metrics", "[metrics]") {
  Registry registry("test");
  const auto endpoint = Serve(registry);

  const std::string reply = HttpGet(endpoint->port(), "/metrics");

  CHECK_THAT(reply, StartsWith("HTTP/1.1 200 OK"));
  CHECK_THAT(reply, Contains("mtmc_build_info"));
}

TEST_CASE("Readiness lists each dependency, and waits for those that are required", "[metrics]") {
  Registry registry("test");
  bool has_store = false;
  const auto endpoint = Serve(
      registry,
      {.dependencies = {
           {.name = "store",
            .check =
                [&] { return has_store ? absl::OkStatus() : absl::UnavailableError("it opens"); }},
           {.name = "gateway", .is_required = false, .check = [] {
              return absl::UnavailableError("nobody answers");
            }}}});

  const std::string before = HttpGet(endpoint->port(), "/readyz");
  CHECK_THAT(before, StartsWith("HTTP/1.1 503"));
  CHECK_THAT(before, EndsWith("not ready\nstore: it opens\ngateway: nobody answers (can do "
                              "without)\n"));
  CHECK_THAT(HttpGet(endpoint->port(), "/healthz"), StartsWith("HTTP/1.1 200"));

  has_store = true;
  const std::string after = HttpGet(endpoint->port(), "/readyz");
  CHECK_THAT(after, StartsWith("HTTP/1.1 200"));
  CHECK_THAT(after, Contains("\r\n\r\nready\nstore: ok\n"));
  const std::string metrics = HttpGet(endpoint->port(), "/metrics");
  CHECK_THAT(metrics, Contains("mtmc_dependency_up{dependency=\"store\"} 1"));
  CHECK_THAT(metrics, Contains("mtmc_dependency_up{dependency=\"gateway\"} 0"));
}

TEST_CASE("A label takes only so many values", "[metrics]") {
  BoundedLabel label(2);

  CHECK(label.Of("a") == "a");
  CHECK(label.Of("") == "none");
  CHECK(label.Of("c") == "other");
  CHECK(label.Of("a") == "a");
}

TEST_CASE("A long label is cut between characters", "[metrics]") {
  BoundedLabel label(10);

  CHECK(label.Of(std::string(79, 'x') + "\u00e9") == std::string(79, 'x'));
  CHECK(label.Of(std::string(100, 'y')) == std::string(80, 'y'));
}

TEST_CASE("A gauge that was removed is served no more", "[metrics]") {
  Registry registry("test");
  registry.MakeGauge("mtmc_best", "Best.", {{"problem", "a"}}).Set(2);
  registry.MakeGauge("mtmc_best", "Best.", {{"problem", "b"}}).Set(3);

  registry.RemoveGauge("mtmc_best", "Best.", {{"problem", "a"}});

  CHECK(registry.Render().find("problem=\"a\"") == std::string::npos);
  CHECK_THAT(registry.Render(), Contains("mtmc_best{problem=\"b\"} 3"));
}

TEST_CASE("The endpoint goes on after rubbish", "[metrics]") {
  Registry registry("test");
  const auto endpoint = Serve(registry);

  Exchange(endpoint->port(), "\r\n\r\nno http\r\n\r\n");
  Exchange(endpoint->port(), "GET /" + std::string(20'000, 'x') + " HTTP/1.1\r\n\r\n");

  CHECK_THAT(HttpGet(endpoint->port(), "/healthz"), StartsWith("HTTP/1.1 200"));
  CHECK_THAT(HttpGet(endpoint->port(), "/nothing"), StartsWith("HTTP/1.1 404"));
}

TEST_CASE("A port in use is PORT_TAKEN", "[metrics]") {
  Registry registry("test");
  const auto first = Serve(registry);

  const auto second =
      HttpEndpoint::Create(registry, {.address = "127.0.0.1:" + std::to_string(first->port())});

  CHECK(rpc::ErrorReason(second.status()) == "PORT_TAKEN");
}

}  // namespace
}  // namespace mtmc::metrics
