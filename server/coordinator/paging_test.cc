// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/paging.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"

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

TEST_CASE("A token of another listing is refused", "[coordinator]") {
  const std::string token = Page({"a", "b", "c"}, "")->next_page_token;

  for (const std::string& wrong : {token, store::MakePageToken("quotas", 1), std::string("!")}) {
    CHECK(rpc::ErrorReason(Page({"a"}, wrong, "quotas").status()) == "INVALID_PAGE_TOKEN");
  }
}

}  // namespace
}  // namespace mtmc::coordinator
