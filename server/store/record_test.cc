// SPDX-License-Identifier: Apache-2.0
//
// The contract of JobStore for what searches learned, run on every implementation.
#include <catch2/catch.hpp>
#include <string>

#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/store/store_makers.h"
#include "server/store/test_records.h"

namespace mtmc::store {
namespace {

using testing::IsOk;
using testing::StatusIs;

LearnedRecord Record(const std::string& name, double seconds, const std::string& anchor = "a") {
  v1::TunedRecord record;
  record.set_name(name);
  record.set_seconds(seconds);
  return {.record = record, .anchor = anchor};
}

std::vector<double> SecondsOf(const absl::StatusOr<std::vector<v1::TunedRecord>>& records) {
  REQUIRE_THAT(records.status(), IsOk());
  std::vector<double> seconds;
  for (const v1::TunedRecord& record : *records) seconds.push_back(record.seconds());
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

}  // namespace

TEMPLATE_TEST_CASE("Of two records with one name the faster stays", "[store]", SqliteMaker,
                   FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  for (const double seconds : {3e-6, 2e-6, 5e-6}) {
    REQUIRE_THAT(store->Commit({.learned = {Record("projects/p/records/a", seconds)}}), IsOk());
  }
  CHECK(store->LookupRecord("projects/p/records/a")->seconds() == 2e-6);
  CHECK(store->ListRecords({.project = "projects/p"})->records.size() == 1);
}

TEMPLATE_TEST_CASE("Records are found by any of their anchors, in their project", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit({.learned = {Record("projects/p/records/a", 1, "x"),
                                          Record("projects/p/records/b", 2, "x"),
                                          Record("projects/p/records/c", 3, "y"),
                                          Record("projects/p/records/d", 4, "z"),
                                          Record("projects/q/records/a", 5, "x")}}),
               IsOk());
  CHECK(SecondsOf(store->FindRecords("projects/p", {"x", "y"})) == std::vector<double>{1, 2, 3});
  CHECK(SecondsOf(store->FindRecords("projects/p", {"w"})).empty());
  CHECK(SecondsOf(store->FindRecords("projects/p", {})).empty());
  // Where projects share, in all of them.
  CHECK(SecondsOf(store->FindRecords("", {"x", "y"})) == std::vector<double>{1, 2, 3, 5});
  CHECK(SecondsOf(store->FindRecords("", {"w"})).empty());
}

TEMPLATE_TEST_CASE("Records are listed oldest first, in pages", "[store]", SqliteMaker, FakeMaker,
                   PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  for (const char* name : {"projects/p/records/c", "projects/q/records/z", "projects/p/records/a",
                           "projects/p/records/b"}) {
    REQUIRE_THAT(store->Commit({.learned = {Record(name, 1)}}), IsOk());
  }
  // It keeps its place.
  REQUIRE_THAT(store->Commit({.learned = {Record("projects/p/records/c", 0.5)}}), IsOk());
  const auto first = *store->ListRecords({.project = "projects/p", .page_size = 2});
  REQUIRE(first.records.size() == 2);
  CHECK(first.records[0].seconds() == 0.5);
  CHECK(first.records[1].name() == "projects/p/records/a");
  const auto second = *store->ListRecords(
      {.project = "projects/p", .page_size = 2, .page_token = first.next_page_token});
  REQUIRE(second.records.size() == 1);
  CHECK(second.records[0].name() == "projects/p/records/b");
  CHECK(second.next_page_token.empty());
  CHECK_THAT(
      store->ListRecords({.project = "projects/q", .page_token = first.next_page_token}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

TEMPLATE_TEST_CASE("A refuted record is gone, and another may take its name", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit({.learned = {Record("projects/p/records/a", 1)}}), IsOk());
  REQUIRE_THAT(store->Commit({.refuted = {"projects/p/records/a"}}), IsOk());
  const absl::Status gone = store->LookupRecord("projects/p/records/a").status();
  CHECK(rpc::ErrorReason(gone) == "RECORD_NOT_FOUND");
  REQUIRE_THAT(store->Commit({.learned = {Record("projects/p/records/a", 2)},
                              .refuted = {"projects/p/records/a"}}),
               IsOk());
  CHECK(store->LookupRecord("projects/p/records/a")->seconds() == 2);
}

TEMPLATE_TEST_CASE("What a job learned outlives it", "[store]", SqliteMaker, FakeMaker,
                   PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit({.job_name = kJob, .new_job = MakeJob(kJob)}), IsOk());
  REQUIRE_THAT(
      store->Commit(
          {.job_name = kJob, .job = MakeJob(kJob), .learned = {Record("projects/p/records/a", 1)}}),
      IsOk());
  REQUIRE_THAT(store->Commit({.job_name = kJob, .is_job_deleted = true}), IsOk());
  CHECK(store->LookupRecord("projects/p/records/a").ok());
}

}  // namespace mtmc::store
