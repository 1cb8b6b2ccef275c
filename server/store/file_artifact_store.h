// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"
#include "server/store/artifact_check.h"
#include "server/store/artifact_store.h"

namespace mtmc::store {

class FileArtifactWriter;

// Blobs as files `ab/abcdef...` below one folder. A blob is written to `tmp/`,
// synchronized, given its name, and its folder synchronized: it is whole after a power
// failure or absent. The folders are made, and synchronized, when the store is opened. Several
// processes may use one folder, each with its own below `tmp/`; opening removes what a killed one
// left there.
class FileArtifactStore final : public ArtifactStore {
 public:
  struct Options {
    // Most bytes of all blobs together; 0 means what the disk has.
    int64_t max_bytes = 0;
  };

  static absl::StatusOr<std::unique_ptr<FileArtifactStore>> Open(const std::string& path,
                                                                 const Options& options);

  // Waits for two commits of the file system's journal, for all of them together.
  std::vector<absl::StatusOr<v1::Digest>> PutAll(const std::vector<std::string>& blobs) override;
  absl::StatusOr<std::unique_ptr<ArtifactWriter>> CreateWriter(const v1::Digest& digest) override;
  absl::StatusOr<bool> Contains(const v1::Digest& digest) override;
  absl::Status Read(const v1::Digest& digest, int64_t offset, const ArtifactSink& sink) override;
  absl::Status List(const std::function<absl::Status(const StoredBlob&)>& take) override;
  absl::Status Remove(const v1::Digest& digest) override;

 private:
  friend class FileArtifactWriter;

  FileArtifactStore(std::string path, const Options& options, int64_t stored_bytes,
                    std::string temporary, base::UniqueFd lock);

  std::string BlobPath(const v1::Digest& digest) const;

  // Whether a file of the right size is there that is not known to be damaged.
  absl::StatusOr<bool> IsStored(const v1::Digest& digest) const;

  // Makes a finished file the blob; whether it did, or the blob was there already.
  absl::StatusOr<bool> Install(const std::string& file, const v1::Digest& digest);

  absl::StatusOr<std::unique_ptr<FileArtifactWriter>> OpenWriter(const v1::Digest& digest);

  // Counts `bytes` as stored, or refuses with DISK_FULL.
  absl::Status Reserve(int64_t bytes);

  const std::string path_;
  const Options options_;
  // Folder of what is not finished, and the lock that says that it is in use.
  const std::string temporary_;
  const base::UniqueFd lock_;
  std::atomic<int64_t> stored_bytes_;
  DamagedBlobs damaged_;
};

}  // namespace mtmc::store
