// SPDX-License-Identifier: Apache-2.0
#include "server/store/artifact_store.h"

namespace mtmc::store {

std::vector<absl::StatusOr<v1::Digest>> ArtifactStore::PutAll(
    const std::vector<std::string>& blobs) {
  std::vector<absl::StatusOr<v1::Digest>> digests;
  for (const std::string& blob : blobs) digests.push_back(Put(blob));
  return digests;
}

}  // namespace mtmc::store
