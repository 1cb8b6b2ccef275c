// SPDX-License-Identifier: Apache-2.0
#include "kernel/engine/operator_document.h"

#include <catch2/catch.hpp>

#include "common/base/file.h"

namespace mtmc::kernel {

TEST_CASE("docs/operators.md is what the tables say", "[engine]") {
  const auto committed = base::ReadFile(MTMC_TEST_DATA "/operators.md");

  REQUIRE(committed.ok());
  INFO("run `mtmc-engine operators > docs/operators.md`");
  CHECK(*committed == OperatorDocument());
}

}  // namespace mtmc::kernel
