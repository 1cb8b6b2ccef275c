// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "mtmc/v1/tensor.pb.h"
#include "worker/daemon/coordinator_client.h"

namespace mtmc::worker {

// Blobs of the coordinator as local files, fetched once each. Files are named by
// digest and written atomically, so that a kill leaves none half-written; two
// threads may fetch the same one. Thread-safe.
class ArtifactCache {
 public:
  // `folder` is created at first use. Borrows the client.
  ArtifactCache(CoordinatorClient& client, std::string folder);

  // Path of the blob. INVALID_ARGUMENT when the digest is none; else fails as
  // CoordinatorClient::Download does, or RESOURCE_EXHAUSTED on a full disk.
  absl::StatusOr<std::string> Fetch(const v1::Digest& digest);

 private:
  CoordinatorClient& client_;
  const std::string folder_;
};

}  // namespace mtmc::worker
