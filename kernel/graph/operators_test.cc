// SPDX-License-Identifier: Apache-2.0
#include "kernel/graph/operators.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

namespace mtmc::kernel {
namespace {

bool IsCallable(std::string_view name) {
  const Operator* found = FindOperator(name);
  return found != nullptr && found->is_callable();
}

}  // namespace

TEST_CASE("Every operator is found by its name", "[graph]") {
  for (const Operator& row : Operators()) {
    INFO(row.name);
    CHECK(FindOperator(row.name) == &row);
  }
}

TEST_CASE("What a view copies with may be called", "[graph]") {
  for (const Operator& row : Operators()) {
    INFO(row.name);
    if (!row.copy.empty()) {
      CHECK(row.use == Operator::Use::kView);
      CHECK(IsCallable(row.copy));
    }
  }
}

TEST_CASE("Operators that compute new tensors may be called", "[graph]") {
  const std::string name = GENERATE(
      "aten::linear", "aten::conv3d", "aten::lstm", "aten::gru", "aten::einsum", "aten::topk",
      "aten::slice_scatter", "aten::scatter_reduce", "aten::linalg_solve", "aten::native_dropout",
      "aten::scaled_dot_product_attention", "aten::embedding_bag", "aten::index_put");
  CHECK(IsCallable(name));
}

TEST_CASE("Operators with a reach beyond their arguments may not be called", "[graph]") {
  const std::string name =
      GENERATE("aten::from_file",                 // reads a file
               "aten::relu_", "aten::set_",       // work in place
               "aten::empty", "aten::new_empty",  // return what nobody wrote
               "aten::view", "aten::as_strided",  // return the memory of an argument
               "aten::_unsafe_index",             // reads beyond its argument
               "aten::item", "aten::no_such_one", "prim::Print", "");
  CHECK_FALSE(IsCallable(name));
}

TEST_CASE("An operator's name ends before its overload", "[graph]") {
  CHECK(WithoutOverload("aten::max.dim") == "aten::max");
  CHECK(WithoutOverload("aten::max") == "aten::max");
}

}  // namespace mtmc::kernel
