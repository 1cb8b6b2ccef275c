// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/device/compiler.h"
#include "worker/device/device.h"
#include "worker/device/library.h"

namespace mtmc::worker {

// What a device reaches, measured with programs of the same form as any
// candidate. Zero where a program did not run.
struct Rates {
  // Of a copy, bytes read plus written per second.
  double memory_bandwidth = 0;
  // Of multiply-adds outside tensor cores, operations per second.
  double fp32 = 0;
  // Of a matrix product with TF32 by the library; 0 without either.
  double tf32 = 0;
};

// `library` may be null. Blocks for about a second.
Rates MeasureRates(Device& device, Library* library, Compiler& compiler);

}  // namespace mtmc::worker
