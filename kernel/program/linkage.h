// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace mtmc::kernel {

// A CUDA source in which every kernel is `extern "C"`, so that its symbol is its name, by which
// plans know it: C++ would add the types of its parameters. Lines stay what they are, unless some
// are joined by a backslash. The source itself where there is nothing to do, or where it is
// ambiguous.
std::string WithCLinkage(std::string_view source);

}  // namespace mtmc::kernel
