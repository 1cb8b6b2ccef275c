// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "kernel/program/program.h"
#include "kernel/program/signature.h"

namespace mtmc::kernel {

using KernelsByName = std::map<std::string, KernelSignature, std::less<>>;

// Which tensors a plan's outputs are computed from, as far as the plan and the
// declarations of its kernels tell.
struct PlanReads {
  // Read by a step whose results reach an output.
  std::set<std::string, std::less<>> read;
  // Passed to some step and yet not read, with what was found, such as "`f` never
  // uses its parameter `mask`".
  std::map<std::string, std::string, std::less<>> unread;
};

// A launch of a kernel that `kernels` lacks reads and writes all that it is given.
// Memory is not told apart by range: who writes a part of a tensor writes it.
PlanReads FindReads(const Program& program, const KernelsByName& kernels);

}  // namespace mtmc::kernel
