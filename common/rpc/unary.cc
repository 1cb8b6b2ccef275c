// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/unary.h"

#include <string>

namespace mtmc::rpc::internal {
namespace {

// In which a full queue of short calls has emptied.
constexpr absl::Duration kRetryDelay = absl::Milliseconds(200);

}  // namespace

absl::Status Overloaded(const absl::Status& status) {
  // A pool that shuts down is UNAVAILABLE already, which clients retry elsewhere.
  if (!absl::IsResourceExhausted(status)) return status;
  return WithRetryDelay(MakeError(status.code(), "OVERLOADED", std::string(status.message())),
                        kRetryDelay);
}

}  // namespace mtmc::rpc::internal
