// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/device/buffer.h"
#include "worker/device/failure.h"
#include "worker/device/random_fill.h"

namespace mtmc::worker {

// A buffer that gets random words (Device::Randomize).
struct BufferFill {
  Buffer* buffer = nullptr;
  // The tensor, too, and not only what lies around it.
  bool with_tensor = true;
};

// For backends: completes the `described` memory of the buffer by what is to be done, and lets
// the buffer remember the stream where there is something of its own around the tensor.
RandomFill PrepareFill(RandomFill described, const BufferFill& fill, uint64_t stream);

// For backends: what Scan says of writes that were found when memory was filled anew.
Failure StrayWrite();

}  // namespace mtmc::worker
