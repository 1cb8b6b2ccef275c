// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>

#include "worker/aten/plugin_abi.h"

namespace mtmc::worker {

// Arguments of the plug-in's border as libtorch takes them, for tensors on
// `device`. Internal to the plug-in.

// Absent when the call does not fit the schema: a name that is not there, too
// many arguments, a value of another type, or a missing one without default.
std::optional<torch::jit::Stack> Match(const c10::FunctionSchema& schema, const MtmcAtenCall& call,
                                       c10::Device device);

// The seed that the generator of random numbers starts from before the call: its
// argument `seed=`, which no operator has. Absent when the generator goes on.
std::optional<uint64_t> FindSeed(const MtmcAtenCall& call);

// The border's number of an element type; absent for types that programs lack.
std::optional<int32_t> FindBorderType(c10::ScalarType type);

}  // namespace mtmc::worker
