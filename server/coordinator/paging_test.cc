// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/paging.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::coordinator {
namespace {

using testing::IsOk;
using Names = std::vector<std::string>;

absl::StatusOr<FilteredPage<std::string>> Page(const Names& names, const std::string& token,
                                               const std::string& listing = "workers") {
  return PageByName(listing, names, 2, token, [](const std::string& name) { return name; });
}

TEST_CASE("Pages by name go on after the last name, whoever came and went", "[coordinator]") {
  const auto first = Page({"d", "b", "c", "e"}, "");
  REQUIRE_THAT(first.status(), IsOk());
  CHECK(first->records == Names{"b", "c"});

  // `a` came, and `c`, with which the page ended, is gone.
  const auto second = Page({"a", "b", "d", "e"}, first->next_page_token);
  REQUIRE_THAT(second.status(), IsOk());
  CHECK(second->records == Names{"d", "e"});
  CHECK(second->next_page_token.empty());
}

TEST_CASE("A token goes on with names of all kinds of letters", "[coordinator]") {
  const auto first = Page({"a:b", "a:b:c", "a:\xff"}, "");
  REQUIRE_THAT(first.status(), IsOk());
  CHECK(Page({"a:b", "a:b:c", "a:\xff"}, first->next_page_token)->records == Names{"a:\xff"});
}

v1::Worker MakeWorker(const std::string& name, v1::Worker::State state) {
  v1::Worker worker;
  worker.set_name(name);
  worker.set_state(state);
  return worker;
}

TEST_CASE("Records that a filter does not hold for are left out", "[coordinator]") {
  const std::vector<v1::Worker> workers = {MakeWorker("a", v1::Worker::STATE_IDLE),
                                           MakeWorker("b", v1::Worker::STATE_LOST)};

  CHECK(Filtered(workers, "")->size() == 2);
  const auto lost = Filtered(workers, "state = LOST");
  REQUIRE_THAT(lost.status(), IsOk());
  REQUIRE(lost->size() == 1);
  CHECK(lost->front().name() == "b");
  CHECK(rpc::ErrorReason(Filtered(workers, "colour = red").status()) == "INVALID_FILTER");
}

TEST_CASE("A token of another listing is refused", "[coordinator]") {
  const std::string token = Page({"a", "b", "c"}, "")->next_page_token;

  for (const std::string& wrong : {token, store::MakePageToken("quotas", 1), std::string("!")}) {
    CHECK(rpc::ErrorReason(Page({"a"}, wrong, "quotas").status()) == "INVALID_PAGE_TOKEN");
  }
}

}  // namespace
}  // namespace mtmc::coordinator
