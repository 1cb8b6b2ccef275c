// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/artifact_store.h"
#include "server/store/job_store.h"

namespace mtmc::coordinator {

// What a sweep found. A value.
struct SweptArtifacts {
  int64_t num_blobs = 0;
  int64_t num_bytes = 0;
  // Removed, or to be removed in a trial.
  int64_t num_removed = 0;
  int64_t num_removed_bytes = 0;
};

// Removes the blobs that were written longer than `retention` ago and that no job and no
// candidate refers to. First lists the old ones, then strikes out what jobs refer to, then
// removes the rest: what gets a new reference meanwhile was asked for, and is kept by the
// store's promise (promised_artifact_store.h). An error ends a sweep, and nothing is
// removed unless all jobs could be read.
//
// Blocks for reads of all jobs and candidates; not for the event loop. CANCELLED once
// `is_stopped`.
struct ArtifactSweep {
  store::JobStore& jobs;
  store::ArtifactStore& artifacts;
  absl::Duration retention;
  // Only tells, and logs each blob.
  bool is_trial = false;
  const std::atomic<bool>& is_stopped;

  absl::StatusOr<SweptArtifacts> Run(absl::Time now) const;
};

}  // namespace mtmc::coordinator
