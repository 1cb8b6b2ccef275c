// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/unary.h"

#include <string>

namespace mtmc::rpc::internal {

absl::Status Overloaded(const absl::Status& status) {
  // A pool that shuts down is UNAVAILABLE already, which clients retry elsewhere.
  if (!absl::IsResourceExhausted(status)) return status;
  return MakeError(status.code(), "OVERLOADED", std::string(status.message()));
}

}  // namespace mtmc::rpc::internal
