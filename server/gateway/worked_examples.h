// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernel/program/program.h"

namespace mtmc::gateway {

// What a prompt teaches about one type of action.
struct WorkedExample {
  // What the action means and what to watch, one paragraph.
  std::string advice;
  // A sound program in the dialect that shows the result; empty for a type that
  // needs none.
  std::string program;
};

// For an action type such as `tile`. A type without an entry gets advice of one
// sentence. `dialect` is kOpenCl or kCuda.
WorkedExample FindWorkedExample(std::string_view type, kernel::Dialect dialect);

// Every type that has an entry.
std::vector<std::string> WorkedExampleTypes();

}  // namespace mtmc::gateway
