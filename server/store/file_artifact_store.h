// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"
#include "server/store/artifact_store.h"

namespace mtmc::store {

class FileArtifactWriter;

// Blobs as files `ab/abcdef...` below one folder. A blob is written to `tmp/`,
// synchronized, renamed, and its folder synchronized: it is whole after a power
// failure or absent. Several processes may use one folder, each with its own below `tmp/`;
// opening removes what a killed one left there.
class FileArtifactStore final : public ArtifactStore {
 public:
  struct Options {
    // Most bytes of all blobs together; 0 means what the disk has.
    int64_t max_bytes = 0;
  };

  static absl::StatusOr<std::unique_ptr<FileArtifactStore>> Open(const std::string& path,
                                                                 const Options& options);

  absl::StatusOr<v1::Digest> Put(std::string_view bytes) override;
  // Two commits of the file system's journal for all of them.
  std::vector<absl::StatusOr<v1::Digest>> PutAll(const std::vector<std::string>& blobs) override;
  absl::StatusOr<std::unique_ptr<ArtifactWriter>> CreateWriter(const v1::Digest& digest) override;
  absl::StatusOr<bool> Contains(const v1::Digest& digest) override;
  absl::StatusOr<std::string> Read(const v1::Digest& digest, int64_t offset,
                                   int64_t max_bytes) override;

 private:
  friend class FileArtifactWriter;

  FileArtifactStore(std::string path, const Options& options, int64_t stored_bytes,
                    std::string temporary, base::UniqueFd lock);

  std::string BlobPath(const v1::Digest& digest) const;

  absl::StatusOr<std::unique_ptr<FileArtifactWriter>> OpenWriter(const v1::Digest& digest);
  // A writer that has all of the blob; null if it is stored already.
  absl::StatusOr<std::unique_ptr<FileArtifactWriter>> Write(std::string_view bytes,
                                                            const v1::Digest& digest);

  // Counts `bytes` as stored, or refuses with DISK_FULL.
  absl::Status Reserve(int64_t bytes);

  const std::string path_;
  const Options options_;
  // Folder of what is not finished, and the lock that says that it is in use.
  const std::string temporary_;
  const base::UniqueFd lock_;
  std::atomic<int64_t> stored_bytes_;
};

}  // namespace mtmc::store
