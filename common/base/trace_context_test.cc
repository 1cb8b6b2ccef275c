// SPDX-License-Identifier: Apache-2.0
#include "common/base/trace_context.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <thread>

namespace mtmc::base {
namespace {

constexpr char kHeader[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST_CASE("A traceparent is what its context prints", "[trace]") {
  const auto context = ParseTraceParent(kHeader);

  REQUIRE(context.has_value());
  CHECK(context->trace_id_hex() == "0af7651916cd43dd8448eb211c80319c");
  CHECK(context->span_id_hex() == "b7ad6b7169203331");
  CHECK(context->is_sampled);
  CHECK(FormatTraceParent(*context) == kHeader);
}

TEST_CASE("A malformed traceparent belongs to no trace", "[trace]") {
  const std::string header =
      GENERATE("", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
               "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
               "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
               "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
               "00-00000000000000000000000000000000-b7ad6b7169203331-01",
               "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
               "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
               "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
               "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
               "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01more");
  CAPTURE(header);

  CHECK_FALSE(ParseTraceParent(header).has_value());
}

TEST_CASE("A later version of traceparent is read as far as it is known", "[trace]") {
  const auto context =
      ParseTraceParent("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02-more");

  REQUIRE(context.has_value());
  CHECK_FALSE(context->is_sampled);
}

TEST_CASE("Whatever is read as a traceparent is printed and read again the same", "[trace]") {
  std::mt19937 random(20260101);
  int num_read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string header = kHeader;
    for (uint32_t edits = random() % 4; edits > 0; --edits) {
      const size_t at = random() % header.size();
      switch (random() % 3) {
        case 0:
          header[at] = "0123456789abcdefg-A\xff"[random() % 20];
          break;
        case 1:
          header.erase(at, 1);
          break;
        default:
          header.insert(at, 1, static_cast<char>(random() % 256));
      }
    }
    const auto context = ParseTraceParent(header);
    if (!context) continue;
    ++num_read;
    if (ParseTraceParent(FormatTraceParent(*context)) != context) FAIL(header);
  }

  // A quarter was not edited at all.
  CHECK(num_read > 4000);
}

TEST_CASE("A trace scope ends where it began", "[trace]") {
  const TraceContext outer = *ParseTraceParent(kHeader);
  TraceContext inner = outer;
  inner.span_id[0] = 1;
  TraceContext elsewhere = outer;
  const TraceScope outer_scope(outer);
  {
    const TraceScope inner_scope(inner);
    CHECK(CurrentTrace() == inner);
    std::jthread([&] { elsewhere = CurrentTrace(); }).join();
  }

  CHECK(CurrentTrace() == outer);
  CHECK_FALSE(elsewhere.is_valid());
}

}  // namespace
}  // namespace mtmc::base
