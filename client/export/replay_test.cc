// SPDX-License-Identifier: Apache-2.0
#include "client/export/replay.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

namespace mtmc::client {
namespace {

// A chain of `launches` kernels and `calls` library calls with one output, that of the last step.
kernel::Program Plan(int launches, int calls, int64_t buffer_elements, int64_t output_elements,
                     const std::string& op = "aten::linear") {
  kernel::Program program;
  program.tensors = {
      {.role = kernel::Tensor::Role::kBuffer, .name = "h", .type = {.shape = {buffer_elements}}},
      {.role = kernel::Tensor::Role::kOutput, .name = "y", .type = {.shape = {output_elements}}}};
  program.steps.insert(program.steps.end(), static_cast<size_t>(launches), kernel::Launch());
  program.steps.insert(program.steps.end(), static_cast<size_t>(calls),
                       kernel::LibraryCall{.op = op, .results = {"y"}});
  return program;
}

TEST_CASE("A plan is replayed where the copy of its outputs costs less than launches", "[export]") {
  CHECK(ReplayPays(Plan(4, 0, 1 << 10, 1 << 10)));
  // One launch is as fast as one replay.
  CHECK_FALSE(ReplayPays(Plan(1, 0, 1 << 10, 1 << 10)));
  CHECK(ReplayPays(Plan(0, 1, 1 << 10, 1 << 10)));
  // What kernels write is not copied.
  CHECK(ReplayPays(Plan(4, 0, 1 << 10, 1 << 23)));
  CHECK_FALSE(ReplayPays(Plan(4, 1, 1 << 10, 1 << 23)));
  CHECK(ReplayPays(Plan(20, 20, 1 << 10, 1 << 24)));
}

TEST_CASE("A plan whose steps hide their launches keeps no scratch in a graph", "[export]") {
  CHECK_FALSE(ReplayPays(Plan(4, 0, 1 << 26, 1 << 10)));
}

TEST_CASE("A plan with calls that may wait is replayed only where it was captured before",
          "[export]") {
  for (const std::string& op : {std::string("aten::nonzero"), std::string("aten::linea")}) {
    kernel::Program program = Plan(1, 3, 1 << 10, 1 << 10, op);
    CHECK_FALSE(ReplayPays(program));
    program.has_capture = true;
    CHECK(ReplayPays(program));
  }
  CHECK(ReplayPays(Plan(1, 3, 1 << 10, 1 << 10, "aten::conv_transpose3d")));
  CHECK(ReplayPays(Plan(1, 3, 1 << 10, 1 << 10, "aten::addmm")));
}

}  // namespace
}  // namespace mtmc::client
