// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mtmc/v1/tensor.pb.h"

namespace mtmc::store {

// A blob that is being received. Dropped unless Finish returned OK.
// Thread-compatible.
class ArtifactWriter {
 public:
  virtual ~ArtifactWriter() = default;

  virtual absl::Status Append(std::string_view bytes) = 0;

  // Makes the blob visible and durable. INVALID_ARGUMENT with reason
  // DIGEST_MISMATCH when the bytes do not hash to the promised digest.
  virtual absl::Status Finish() = 0;
};

// Immutable blobs by digest. A blob is absent or whole: a crash in the middle
// of a write leaves nothing. Thread-safe. Blocks for disk.
// RESOURCE_EXHAUSTED with reason DISK_FULL: free space and try again.
class ArtifactStore {
 public:
  virtual ~ArtifactStore() = default;

  // Stores `bytes`, or does nothing when they are stored already.
  virtual absl::StatusOr<v1::Digest> Put(std::string_view bytes) = 0;

  // The same for each of `blobs`, in their order. A store may wait for its disk once for
  // all of them.
  virtual std::vector<absl::StatusOr<v1::Digest>> PutAll(const std::vector<std::string>& blobs);

  // Starts to receive a blob that will have this digest.
  virtual absl::StatusOr<std::unique_ptr<ArtifactWriter>> CreateWriter(
      const v1::Digest& digest) = 0;

  // INVALID_ARGUMENT with reason INVALID_DIGEST when it is malformed.
  virtual absl::StatusOr<bool> Contains(const v1::Digest& digest) = 0;

  // At most `max_bytes` from `offset` on; fewer only at the end. NOT_FOUND with
  // reason ARTIFACT_NOT_FOUND.
  virtual absl::StatusOr<std::string> Read(const v1::Digest& digest, int64_t offset,
                                           int64_t max_bytes) = 0;
};

}  // namespace mtmc::store
