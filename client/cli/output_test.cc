// SPDX-License-Identifier: Apache-2.0
#include "client/cli/output.h"

#include <catch2/catch.hpp>
#include <sstream>

namespace mtmc::client {
namespace {

TEST_CASE("Table aligns text to the left and numbers to the right", "[cli]") {
  Table table({"name", ">time"});
  table.AddRow({"a", "1"});
  table.AddRow({"longer", "100"});
  std::ostringstream out;

  table.Print(out);

  CHECK(out.str() == "name    time\na          1\nlonger   100\n");
}

TEST_CASE("FormatSeconds keeps three digits in a fitting unit", "[cli]") {
  const auto [seconds, text] = GENERATE(table<double, std::string>({{2.5, "2.5 s"},
                                                                    {0.1234, "123 ms"},
                                                                    {0.01234, "12.3 ms"},
                                                                    {0.001234, "1.23 ms"},
                                                                    {5e-6, "5.00 us"}}));
  CAPTURE(seconds);

  CHECK(FormatSeconds(seconds) == text);
}

}  // namespace
}  // namespace mtmc::client
