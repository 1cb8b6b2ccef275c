// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/artifact_cache.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace mtmc::worker {
namespace {

// A digest becomes part of a path, so nothing but hexadecimal may be in it.
bool IsDigest(const std::string& text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
}

}  // namespace

ArtifactCache::ArtifactCache(CoordinatorClient& client, std::string folder)
    : client_(client), folder_(std::move(folder)) {}

absl::StatusOr<std::string> ArtifactCache::Fetch(const v1::Digest& digest) {
  if (!IsDigest(digest.sha256())) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", digest.sha256(), "' is not a SHA-256 digest"));
  }
  const std::string path = absl::StrCat(folder_, "/", digest.sha256());
  if (std::filesystem::exists(path)) return path;
  MTMC_ASSIGN_OR_RETURN(const std::string bytes, client_.Download(digest));
  MTMC_RETURN_IF_ERROR(base::WriteFileAtomically(path, bytes));
  return path;
}

}  // namespace mtmc::worker
