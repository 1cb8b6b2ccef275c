// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace mtmc::worker {

// One thing that a worker needs or can use, and whether this host has it.
struct HostCheck {
  enum class State {
    kPresent,
    kDegraded,  // works, with less: `detail` says what is lost
    kMissing,   // needed, or needed for one of the backends
  };
  // Short and stable, such as `opencl` or `namespaces.user`.
  std::string name;
  State state = State::kMissing;
  // What was found.
  std::string detail;
  // What to do; empty when present.
  std::string remedy;
};

}  // namespace mtmc::worker
