// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mtmc/v1/tensor.pb.h"

namespace mtmc::store {

// A blob that is being received. Dropped unless Finish returned OK. What is stored
// already is checked and not written again. Thread-compatible.
class ArtifactWriter {
 public:
  virtual ~ArtifactWriter() = default;

  virtual absl::Status Append(std::string_view bytes) = 0;

  // Makes the blob visible and durable. INVALID_ARGUMENT with reason
  // DIGEST_MISMATCH when the bytes do not hash to the promised digest.
  virtual absl::Status Finish() = 0;
};

// Takes the next bytes of a blob. Its error ends the reading.
using ArtifactSink = std::function<absl::Status(std::string piece)>;

inline constexpr int64_t kMaxPieceBytes = 1 << 20;

struct StoredBlob {
  v1::Digest digest;
  // When it was written.
  absl::Time modified;
};

// Immutable blobs by digest. Every implementation keeps, and artifact_store_test.cc checks:
//  1. A blob is absent or whole: a crash in the middle of a write leaves nothing.
//  2. What Put or Finish returned OK for survives a power failure.
//  3. A blob that exists is not written again, and counts once towards a limit.
//  4. A blob that is damaged is never taken for whole: its last bytes are not passed
//     on. From then on it counts as absent in this process, until it is stored again.
//
// Thread-safe. Blocks for disk or network.
// RESOURCE_EXHAUSTED with reason DISK_FULL: free space and try again.
class ArtifactStore {
 public:
  virtual ~ArtifactStore() = default;

  // Stores `bytes`, or does nothing when they are stored already.
  absl::StatusOr<v1::Digest> Put(std::string_view bytes);

  // The same for each of `blobs`, in their order. A store may wait for its disk once for
  // all of them.
  virtual std::vector<absl::StatusOr<v1::Digest>> PutAll(const std::vector<std::string>& blobs);

  // Starts to receive a blob that will have this digest.
  virtual absl::StatusOr<std::unique_ptr<ArtifactWriter>> CreateWriter(
      const v1::Digest& digest) = 0;

  // INVALID_ARGUMENT with reason INVALID_DIGEST when it is malformed.
  virtual absl::StatusOr<bool> Contains(const v1::Digest& digest) = 0;

  // Passes the blob on from `offset` on, in pieces of at most kMaxPieceBytes. NOT_FOUND
  // with reason ARTIFACT_NOT_FOUND; DATA_LOSS with reason ARTIFACT_CORRUPT when what is
  // stored does not hash to its digest.
  virtual absl::Status Read(const v1::Digest& digest, int64_t offset, const ArtifactSink& sink) = 0;

  // Tells of every blob, in no order; the error of `take` ends it. What else lies there is
  // left out. One that comes or goes meanwhile may be among them or not.
  virtual absl::Status List(const std::function<absl::Status(const StoredBlob&)>& take) = 0;

  // Removes a blob, if it is there.
  virtual absl::Status Remove(const v1::Digest& digest) = 0;

  // Whether it may be asked now; else why not. For /readyz: never blocks for long.
  virtual absl::Status CheckReady() { return absl::OkStatus(); }

  // Ends calls that wait for a network, with UNAVAILABLE; for the end of the process.
  virtual void Interrupt() {}
};

v1::Digest DigestOf(std::string_view bytes);

// INVALID_ARGUMENT with reason INVALID_DIGEST unless it is well-formed.
absl::Status CheckDigest(const v1::Digest& digest);

// The blob in memory. FAILED_PRECONDITION with reason ARTIFACT_TOO_LARGE above
// `max_bytes`; else as ArtifactStore::Read.
absl::StatusOr<std::string> ReadWhole(ArtifactStore& store, const v1::Digest& digest,
                                      int64_t max_bytes);

}  // namespace mtmc::store
