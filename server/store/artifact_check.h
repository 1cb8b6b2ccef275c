// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/digest.h"
#include "server/store/artifact_store.h"

namespace mtmc::store {

// Blobs that were found damaged, so that they are not taken for stored, and may be
// written again. Thread-safe.
class DamagedBlobs {
 public:
  void Add(const std::string& sha256) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(const std::string& sha256) ABSL_LOCKS_EXCLUDED(mu_);
  bool Contains(const std::string& sha256) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  std::set<std::string> blobs_ ABSL_GUARDED_BY(mu_);
};

// INVALID_ARGUMENT with reason DIGEST_MISMATCH, for an upload.
absl::Status DigestMismatch(const v1::Digest& digest);

// NOT_FOUND with reason ARTIFACT_NOT_FOUND: what Read says of a blob that is absent, and of
// one that is to look like it.
absl::Status ArtifactNotFound(const v1::Digest& digest);

// Passes a blob on while it hashes it, and keeps the last piece back until the digest of
// the whole is right:
//
//   CheckedReading reading(digest, offset, sink, damaged);
//   reading.Add(first), reading.Add(second), ...   // all bytes, from 0 on
//   return reading.Finish();
//
// For the implementations of ArtifactStore. Thread-compatible.
class CheckedReading {
 public:
  // All but the digest are borrowed.
  CheckedReading(v1::Digest digest, int64_t offset, const ArtifactSink& sink,
                 DamagedBlobs& damaged);

  // The sink's error.
  absl::Status Add(std::string_view bytes);

  // DATA_LOSS with reason ARTIFACT_CORRUPT, after which the blob is in `damaged`.
  absl::Status Finish();

 private:
  const v1::Digest digest_;
  const ArtifactSink& sink_;
  DamagedBlobs& damaged_;
  base::Sha256Builder hash_;
  int64_t size_ = 0;
  // What is not to be passed on before the next bytes that are.
  int64_t to_skip_;
  std::string pending_;
};

}  // namespace mtmc::store
