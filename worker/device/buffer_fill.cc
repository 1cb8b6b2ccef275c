// SPDX-License-Identifier: Apache-2.0
#include "worker/device/buffer_fill.h"

namespace mtmc::worker {

RandomFill PrepareFill(RandomFill described, const BufferFill& fill, uint64_t stream) {
  described.stream = stream;
  described.fills_tensor = fill.with_tensor ? 1 : 0;
  if (!described.is_alone) return described;
  described.fills_around = 1;
  described.former = fill.buffer->stream();
  fill.buffer->set_stream(stream);
  return described;
}

Failure StrayWrite() {
  return {.kind = Failure::Kind::kOutOfBounds,
          .message = "memory beside a tensor was written in one of several executions"};
}

}  // namespace mtmc::worker
