// SPDX-License-Identifier: Apache-2.0
#include "server/store/owner_store.h"

#include "common/rpc/error.h"

namespace mtmc::store {

absl::Status NotOwner() {
  return rpc::MakeError(absl::StatusCode::kUnavailable, "NOT_OWNER",
                        "another coordinator owns the jobs now; call again");
}

absl::Status OwnerChanged() {
  return rpc::MakeError(absl::StatusCode::kAborted, "OWNER_CHANGED", "the owner has changed");
}

}  // namespace mtmc::store
