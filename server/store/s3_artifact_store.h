// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/s3/client.h"
#include "server/store/artifact_check.h"
#include "server/store/artifact_store.h"

namespace mtmc::store {

// Blobs as objects `PREFIX/ab/abcdef...` of a bucket, named as the files of a
// FileArtifactStore. One of more than a part is sent in parts, so that no more than that
// of an upload or a reading is in memory. Several processes may use one bucket.
//
// Besides the errors of ArtifactStore, those of s3::Client.
class S3ArtifactStore final : public ArtifactStore {
 public:
  struct Options {
    // S3 takes no part below 5 MiB but the last, and 10,000 parts.
    int64_t part_bytes = 8 << 20;
    // Between two looks whether the server is there, while it is and while it is not.
    absl::Duration probe_interval = absl::Seconds(30);
    absl::Duration probe_interval_away = absl::Seconds(2);
  };

  // Asks the server once: what only an operator can mend is an error, and one that is
  // away is waited for.
  static absl::StatusOr<std::unique_ptr<S3ArtifactStore>> Open(std::unique_ptr<s3::Client> client,
                                                               const Options& options);

  ~S3ArtifactStore() override;

  absl::StatusOr<std::unique_ptr<ArtifactWriter>> CreateWriter(const v1::Digest& digest) override;
  absl::StatusOr<bool> Contains(const v1::Digest& digest) override;
  absl::Status Read(const v1::Digest& digest, int64_t offset, const ArtifactSink& sink) override;
  absl::Status List(const std::function<absl::Status(const StoredBlob&)>& take) override;
  absl::Status Remove(const v1::Digest& digest) override;
  absl::Status CheckReady() override ABSL_LOCKS_EXCLUDED(mu_);
  void Interrupt() override;

 private:
  friend class S3ArtifactWriter;

  S3ArtifactStore(std::unique_ptr<s3::Client> client, const Options& options);

  std::string KeyOf(const v1::Digest& digest) const;
  absl::Status Probe();
  void ProbeAgainAndAgain() ABSL_LOCKS_EXCLUDED(mu_);

  const std::unique_ptr<s3::Client> client_;
  const Options options_;
  DamagedBlobs damaged_;
  absl::Mutex mu_;
  absl::Status ready_ ABSL_GUARDED_BY(mu_);
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  // Last, because it uses the others.
  std::jthread prober_;
};

}  // namespace mtmc::store
