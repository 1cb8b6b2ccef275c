// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/metrics/metrics.h"
#include "server/store/artifact_store.h"

namespace mtmc::store {

// Counts what another store is asked for, how long that takes, and what comes of it.
// Thread-safe.
class MeteredArtifactStore final : public ArtifactStore {
 public:
  // The registry is borrowed.
  MeteredArtifactStore(std::unique_ptr<ArtifactStore> store, metrics::Registry& registry);

  std::vector<absl::StatusOr<v1::Digest>> PutAll(const std::vector<std::string>& blobs) override;
  absl::StatusOr<std::unique_ptr<ArtifactWriter>> CreateWriter(const v1::Digest& digest) override;
  absl::StatusOr<bool> Contains(const v1::Digest& digest) override;
  absl::Status Read(const v1::Digest& digest, int64_t offset, const ArtifactSink& sink) override;
  absl::Status List(const std::function<absl::Status(const StoredBlob&)>& take) override;
  absl::Status Remove(const v1::Digest& digest) override;
  absl::Status CheckReady() override;
  void Interrupt() override;

 private:
  std::unique_ptr<ArtifactStore> store_;
  metrics::Registry& registry_;
};

}  // namespace mtmc::store
