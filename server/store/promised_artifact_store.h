// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/store/artifact_store.h"

namespace mtmc::store {

// Another store, whose blobs are not removed soon after somebody was told that they are
// there: whoever heard it may be about to record a job or a candidate that refers to one.
//
// Remove() refuses such a blob, FAILED_PRECONDITION with reason ARTIFACT_PROMISED, and
// while it removes another one, whoever asks for that waits. Holds within this process: of
// several coordinators, the one that owns the jobs removes, and makes what refers to blobs.
// What is remembered of a blob besides goes first, with nobody asking for it either.
// Thread-safe.
class PromisedArtifactStore final : public ArtifactStore {
 public:
  // Forgets what is remembered of a blob that goes; its error keeps the blob.
  using Forget = std::function<absl::Status(const std::string& sha256)>;

  // A blob is kept for `kept` from the newest promise on. The clock is borrowed.
  PromisedArtifactStore(std::unique_ptr<ArtifactStore> store, absl::Duration kept,
                        const base::Clock& clock, Forget forget = nullptr);

  std::vector<absl::StatusOr<v1::Digest>> PutAll(const std::vector<std::string>& blobs) override;
  absl::StatusOr<std::unique_ptr<ArtifactWriter>> CreateWriter(const v1::Digest& digest) override;
  absl::StatusOr<bool> Contains(const v1::Digest& digest) override;
  absl::Status Read(const v1::Digest& digest, int64_t offset, const ArtifactSink& sink) override;
  absl::Status List(const std::function<absl::Status(const StoredBlob&)>& take) override;
  absl::Status Remove(const v1::Digest& digest) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckReady() override;
  void Interrupt() override;

 private:
  friend class PromisedArtifactWriter;

  void Promise(const std::string& sha256) ABSL_LOCKS_EXCLUDED(mu_);
  void ForgetOld(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<ArtifactStore> store_;
  const absl::Duration kept_;
  const base::Clock& clock_;
  // May be null.
  const Forget forget_;
  absl::Mutex mu_;
  // When each was promised last.
  std::map<std::string, absl::Time> promises_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> removed_now_ ABSL_GUARDED_BY(mu_);
  absl::Time next_forgetting_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
};

}  // namespace mtmc::store
