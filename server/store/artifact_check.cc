// SPDX-License-Identifier: Apache-2.0
#include "server/store/artifact_check.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"

namespace mtmc::store {

void DamagedBlobs::Add(const std::string& sha256) {
  const absl::MutexLock lock(&mu_);
  blobs_.insert(sha256);
}

void DamagedBlobs::Remove(const std::string& sha256) {
  const absl::MutexLock lock(&mu_);
  blobs_.erase(sha256);
}

bool DamagedBlobs::Contains(const std::string& sha256) const {
  const absl::MutexLock lock(&mu_);
  return blobs_.contains(sha256);
}

absl::Status DigestMismatch(const v1::Digest& digest) {
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "DIGEST_MISMATCH",
                        absl::StrCat("the bytes do not hash to ", digest.sha256(), " with ",
                                     digest.size_bytes(), " bytes; send them again"));
}

absl::Status ArtifactNotFound(const v1::Digest& digest) {
  return rpc::MakeError(absl::StatusCode::kNotFound, "ARTIFACT_NOT_FOUND",
                        absl::StrCat("artifact ", digest.sha256(), " is not stored"),
                        {{"sha256", digest.sha256()}});
}

CheckedReading::CheckedReading(v1::Digest digest, int64_t offset, const ArtifactSink& sink,
                               DamagedBlobs& damaged)
    : digest_(std::move(digest)), sink_(sink), damaged_(damaged), to_skip_(offset) {}

absl::Status CheckedReading::Add(std::string_view bytes) {
  hash_.Append(bytes);
  size_ += static_cast<int64_t>(bytes.size());
  const auto skipped = std::min(to_skip_, static_cast<int64_t>(bytes.size()));
  to_skip_ -= skipped;
  bytes.remove_prefix(static_cast<size_t>(skipped));
  while (!bytes.empty()) {
    if (pending_.size() == kMaxPieceBytes) {
      MTMC_RETURN_IF_ERROR(sink_(std::exchange(pending_, std::string())));
    }
    const size_t taken = std::min(bytes.size(), kMaxPieceBytes - pending_.size());
    pending_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
  }
  return absl::OkStatus();
}

absl::Status CheckedReading::Finish() {
  const std::string actual = hash_.Finish().sha256_hex;
  if (actual != digest_.sha256()) {
    damaged_.Add(digest_.sha256());
    return rpc::MakeError(
        absl::StatusCode::kDataLoss, "ARTIFACT_CORRUPT",
        absl::StrCat("artifact ", digest_.sha256(), " is damaged: its ", size_,
                     " stored bytes hash to ", actual, "; upload it again, and check the disk"),
        {{"sha256", digest_.sha256()}});
  }
  return pending_.empty() ? absl::OkStatus() : sink_(std::move(pending_));
}

}  // namespace mtmc::store
