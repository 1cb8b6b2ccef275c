// SPDX-License-Identifier: Apache-2.0
//
// The orders of JobStore::ListJobs, on every implementation.
#include "server/store/job_order.h"

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/store/store_makers.h"
#include "server/store/test_records.h"

namespace mtmc::store {
namespace {

using testing::IsOk;

constexpr char kProject[] = "projects/p";

void Insert(JobStore& store, const std::string& id, std::optional<double> speedup,
            std::optional<int64_t> end_seconds) {
  v1::Job job = MakeJob(std::string(kProject) + "/jobs/" + id);
  REQUIRE_THAT(store.Commit({.job_name = job.name(), .new_job = job}), IsOk());
  if (speedup) job.set_best_speedup(*speedup);
  if (end_seconds) job.mutable_end_time()->set_seconds(*end_seconds);
  REQUIRE_THAT(store.Commit({.job_name = job.name(), .job = job}), IsOk());
}

// Ids of one page, in its order; moves `token` on.
std::string Page(JobStore& store, const std::string& order_by, int size, std::string& token) {
  const auto page = store.ListJobs({.project = kProject,
                                    .order = *ParseJobOrder(order_by),
                                    .page_size = size,
                                    .page_token = token});
  REQUIRE_THAT(page.status(), IsOk());
  token = page->next_page_token;
  std::string ids;
  for (const v1::Job& job : page->jobs) ids += job.name().substr(job.name().rfind('/') + 1);
  return ids;
}

std::string All(JobStore& store, const std::string& order_by, int size) {
  std::string token;
  std::string ids;
  do {
    ids += Page(store, order_by, size, token);
  } while (!token.empty());
  return ids;
}

}  // namespace

TEMPLATE_TEST_CASE("JobStore lists jobs in the order that is asked for", "[store]", SqliteMaker,
                   FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  Insert(*store, "a", 1.5, 30);
  Insert(*store, "b", std::nullopt, 10);
  Insert(*store, "c", 0.25, std::nullopt);
  Insert(*store, "d", 1.5, 20);
  Insert(*store, "e", std::nullopt, std::nullopt);
  Insert(*store, "f", 1.25e3, 20);

  for (const int size : {1, 2, 4, 6, 50}) {
    CAPTURE(size);
    CHECK(All(*store, "", size) == "fedcba");
    CHECK(All(*store, "create_time desc", size) == "fedcba");
    CHECK(All(*store, "create_time", size) == "abcdef");
    CHECK(All(*store, "best_speedup", size) == "cdafeb");
    CHECK(All(*store, "best_speedup desc", size) == "fdaceb");
    CHECK(All(*store, "end_time", size) == "bfdaec");
    CHECK(All(*store, "end_time desc", size) == "afdbec");
  }
}

TEMPLATE_TEST_CASE("JobStore pages on where it was while jobs are added", "[store]", SqliteMaker,
                   FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  Insert(*store, "a", 3, std::nullopt);
  Insert(*store, "b", 2, std::nullopt);
  Insert(*store, "c", 1, std::nullopt);
  std::string token;

  REQUIRE(Page(*store, "best_speedup desc", 2, token) == "ab");
  // Before, at and after the mark.
  Insert(*store, "d", 5, std::nullopt);
  Insert(*store, "e", 2, std::nullopt);
  Insert(*store, "f", 1.5, std::nullopt);

  CHECK(Page(*store, "best_speedup desc", 10, token) == "fc");
  CHECK(token.empty());
}

TEMPLATE_TEST_CASE("JobStore refuses a page token of another order", "[store]", SqliteMaker,
                   FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  Insert(*store, "a", 3, std::nullopt);
  Insert(*store, "b", 2, std::nullopt);
  std::string token;
  Page(*store, "best_speedup desc", 1, token);

  for (const char* other : {"", "best_speedup", "end_time desc", "create_time"}) {
    CAPTURE(other);
    const auto page =
        store->ListJobs({.project = kProject, .order = *ParseJobOrder(other), .page_token = token});
    CHECK(rpc::ErrorReason(page.status()) == "INVALID_PAGE_TOKEN");
  }
}

TEST_CASE("ParseJobOrder refuses what is no order", "[store]") {
  for (const char* text : {"name", "desc", "end_time asc", "end_time desc desc", "END_TIME",
                           "end_time,create_time", "best_speedup DESC"}) {
    CAPTURE(text);
    CHECK(rpc::ErrorReason(ParseJobOrder(text).status()) == "INVALID_ORDER");
  }
  CHECK(*ParseJobOrder("  end_time   desc ") ==
        JobOrder{.field = JobOrder::Field::kEndTime, .is_descending = true});
}

}  // namespace mtmc::store
