// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "policy/rules/search_state.h"

namespace mtmc::policy {

// Longest prompt unless the caller asks for less. About 4,000 tokens: room for
// a network of a hundred ops, and a second on two CPU cores with a model of a
// billion parameters is spent mostly on it.
inline constexpr size_t kPromptBytes = 12000;

// The text form of a search state that a language model continues with an
// action:
//
//   Choose the next optimization of this program.
//   Device: NVIDIA H200, 132 units, 4000 GB/s, 51.0 TFLOP/s fp32, ...
//   Precision: kernelbench
//   Reference:
//   input x: f32[8,16]
//   gelu: f32[8,16] = aten::gelu.default(x, 'none')  # line 21
//   output y: f32[8,16] = gelu
//   Program:
//   //@ mtmc 1 cuda ...
//   Time: 0.123 ms, speedup 1.25
//   Limit: memory, 43% of the speed of light
//   Kernels: gelu 81%, sum 19%
//   Counters: dram 43 %, l2 20 %, ..., stalls: long scoreboard 60 %
//   Steps so far:
//   1. fuse gelu into gemm_0: faster, speedup 1.25
//   Steps left: 5
//   Legal actions:
//   - stop
//   Next action:
//
// Deterministic; the legal actions are sorted, so their order does not matter.
// At most `max_bytes` long (of at least 1,500): the reference, the program, the
// steps and the actions each have a share of it, and lose their middle when
// they exceed it. Always ends in a colon, where no token joins an action.
std::string MakePrompt(const SearchState& search_state, std::span<const Action> actions,
                       size_t max_bytes = kPromptBytes);

}  // namespace mtmc::policy
