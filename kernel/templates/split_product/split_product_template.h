// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/templates/kernel_template.h"

namespace mtmc::kernel {

// One FP32 sum of products on tensor cores: each factor is the sum of two TF32 numbers, and of
// the four products of these the three that FP32 can see are added by one library call (NVIDIA's
// "3xTF32", CUTLASS example 27). With x = h + t, h the nearest TF32 number:
//
//   a * b = t_a * h_b + h_a * t_b + h_a * h_b + t_a * t_b, of which the last is below 2^-22 a b
//
// so the call multiplies rows [t | h | h] by columns [h | t | h]. A kernel before it writes each
// factor so, one after it adds up and computes the maps that follow. Tensor cores round their
// running sum towards zero, so that it is biased in proportion to its length: each sum is made of
// parts of `sum` elements. Where one factor is infinite, the answer may be NaN.
extern const KernelTemplate kSplitProductTemplate;

}  // namespace mtmc::kernel
