// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "kernel/program/program.h"

namespace mtmc::kernel {

// Helper functions of the device source, printed once at the head of a program
// that uses them:
//
//   fast_erf, fast_tanh, fast_log1p, fast_expm1   OpenCL: free of branches and calls that CPU
//                            compilers cannot vectorize; within 2e-7 relative of the exact value
//   sigmoid, maximum_f32, minimum_f32, ...        PyTorch's functions, NaN rules included
//   floor_div, floor_mod                          integers, towards minus infinity
//   floor_divide_f32, remainder_f32, ..._f64      the same of floating-point numbers
//   tf32_head, tf32_tail     FP32 as the sum of the nearest TF32 number and the rest
//   bf16_to_float, float_to_bf16, round_to_f16, round_to_bf16
//   load_f32x4(to, from), store_f16x8(to, from)   TYPExLANES elements between memory and a local
//                            array of the compute type, 16 bytes at a time; aligned to the width

// The helper functions that `code` calls, by name.
std::set<std::string> DeviceFunctionsIn(std::string_view code);

// Source of the named functions and of those they call, in a fixed order.
std::string DeviceFunctions(const std::set<std::string>& names, Dialect dialect);

}  // namespace mtmc::kernel
