// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/evaluation_context.h"

namespace mtmc::worker {

absl::Duration TimeoutOr(const google::protobuf::Duration& asked, absl::Duration fallback) {
  const absl::Duration value = absl::Seconds(asked.seconds()) + absl::Nanoseconds(asked.nanos());
  return value > absl::ZeroDuration() ? value : fallback;
}

}  // namespace mtmc::worker
