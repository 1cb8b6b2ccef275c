// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/call_parser.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace mtmc::kernel {
namespace {

TEST_CASE("ParseCall reads operator, overload, results and precision", "[program]") {
  const LibraryCall call =
      ParseCall("aten::max.dim(x, 1, keepdim=True) -> values, _ precision=ieee").value();

  CHECK(call.op == "aten::max");
  CHECK(call.overload == "dim");
  CHECK(call.results == std::vector<std::string>{"values", "_"});
  CHECK(call.precision == LibraryCall::Precision::kIeee);
  REQUIRE(call.arguments.size() == 3);
  CHECK(call.arguments[2].keyword == "keepdim");
  CHECK(std::get<bool>(call.arguments[2].value));
}

TEST_CASE("ParseCall reads the layout of results", "[program]") {
  const LibraryCall call =
      ParseCall("aten::conv2d(x, w) -> y precision=ieee layout=channels_last").value();

  CHECK(call.is_channels_last);
  CHECK(call.precision == LibraryCall::Precision::kIeee);
  CHECK(call.results == std::vector<std::string>{"y"});
  CHECK(ParseCall("aten::conv2d(x, w) -> y layout=channels_last").value().is_channels_last);
  CHECK_FALSE(ParseCall("aten::conv2d(x, w) -> y").value().is_channels_last);
}

TEST_CASE("ParseCall reads every kind of literal", "[program]") {
  const LibraryCall call =
      ParseCall(
          "aten::f(None, False, -3, 1.5, -inf, \"a, (b\", 'it\\'s', [1, 2], [x, None], []) -> y")
          .value();

  REQUIRE(call.arguments.size() == 10);
  CHECK(std::holds_alternative<NoneLiteral>(call.arguments[0].value));
  CHECK_FALSE(std::get<bool>(call.arguments[1].value));
  CHECK(std::get<int64_t>(call.arguments[2].value) == -3);
  CHECK(std::get<double>(call.arguments[3].value) == 1.5);
  CHECK(std::isinf(std::get<double>(call.arguments[4].value)));
  CHECK(std::get<std::string>(call.arguments[5].value) == "a, (b");
  CHECK(std::get<std::string>(call.arguments[6].value) == "it's");
  const auto& list = std::get<std::vector<CallArgument>>(call.arguments[8].value);
  CHECK(std::get<CallArgument::TensorName>(list[0].value).name == "x");
  CHECK(std::get<std::vector<CallArgument>>(call.arguments[9].value).empty());
}

TEST_CASE("ParseCall reads elements of a tensor where they lie", "[program]") {
  const LibraryCall call =
      ParseCall("aten::mm(as_strided(x, [64, 16], [1, 64], 8), as_strided(y, [], [])) -> z")
          .value();

  REQUIRE(call.arguments.size() == 2);
  const auto& x = std::get<CallArgument::TensorName>(call.arguments[0].value);
  CHECK(x.name == "x");
  CHECK(x.view == StridedView{.shape = {64, 16}, .strides = {1, 64}, .offset = 8});
  const auto& y = std::get<CallArgument::TensorName>(call.arguments[1].value);
  CHECK(y.view == StridedView());
}

TEST_CASE("A view lies within a tensor that has its last element", "[program]") {
  constexpr int64_t kLarge = INT64_MAX / 2;

  CHECK(LiesWithin({.shape = {4, 3}, .strides = {3, 1}}, 12));
  CHECK_FALSE(LiesWithin({.shape = {4, 3}, .strides = {3, 1}, .offset = 1}, 12));
  CHECK(LiesWithin({.shape = {4, 3}, .strides = {0, 2}, .offset = 1}, 6));
  CHECK_FALSE(LiesWithin({.shape = {4, 3}, .strides = {0, 2}, .offset = 2}, 6));
  CHECK(LiesWithin({.shape = {5, 0}, .strides = {kLarge, kLarge}, .offset = 6}, 6));
  CHECK_FALSE(LiesWithin({.shape = {0}, .strides = {1}, .offset = 7}, 6));
  CHECK_FALSE(LiesWithin({.shape = {5}, .strides = {kLarge}}, 6));
  CHECK_FALSE(LiesWithin({.shape = {3, 3}, .strides = {kLarge, kLarge}}, 6));
  CHECK_FALSE(LiesWithin({}, 0));
}

TEST_CASE("ParseCall refuses what is no call", "[program]") {
  const std::string text = GENERATE(
      "", "aten::relu", "aten::relu(x)", "aten::relu(x -> y", "relu(x) -> y", "aten::(x) -> y",
      "aten::relu.(x) -> y", "aten::relu(x) -> ", "aten::relu(x) -> y, y", "aten::relu(x) -> 1",
      "aten::relu(x) => y", "aten::relu(x y) -> z", "aten::relu(,) -> y", "aten::relu([[1]]) -> y",
      "aten::relu([1) -> y", "aten::relu('a) -> y", "aten::relu(\"\\n\") -> y",
      "aten::relu(dim=) -> y", "aten::relu(dim=1, x) -> y", "aten::relu(x) -> y precision=fp8",
      "aten::relu(x) -> y layout=blocked", "aten::relu(x) -> y layout=channels_last precision=tf32",
      "aten::relu(x.y) -> z", "aten::relu(f(x)) -> y", "aten::relu(1e999) -> y",
      "aten::relu(as_strided(x)) -> y", "aten::relu(as_strided(x, [1], [1], 0, 0)) -> y",
      "aten::relu(as_strided(x, [1], [1, 1])) -> y", "aten::relu(as_strided(x, [-1], [1])) -> y",
      "aten::relu(as_strided(x, [1], [-1])) -> y", "aten::relu(as_strided(x, [1], [1], -1)) -> y",
      "aten::relu(as_strided(x, 1, 1)) -> y", "aten::relu(as_strided(1, [1], [1])) -> y",
      "aten::relu(as_strided(x, [1], [1]) -> y", "aten::relu(as_strided(x, [1], [1]], 0)) -> y",
      "aten::relu(as_strided(x, [9999999999, 9999999999], [0, 0])) -> y");
  CAPTURE(text);

  CHECK(ParseCall(text).status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mtmc::kernel
