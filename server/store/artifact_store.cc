// SPDX-License-Identifier: Apache-2.0
#include "server/store/artifact_store.h"

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"

namespace mtmc::store {

v1::Digest DigestOf(std::string_view bytes) {
  v1::Digest digest;
  digest.set_sha256(base::Sha256(bytes).sha256_hex);
  digest.set_size_bytes(static_cast<int64_t>(bytes.size()));
  return digest;
}

absl::Status CheckDigest(const v1::Digest& digest) {
  if (base::Digest{digest.sha256()}.is_valid() && digest.size_bytes() >= 0) {
    return absl::OkStatus();
  }
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_DIGEST",
                        absl::StrCat("digest \"", digest.sha256(), "\" with ", digest.size_bytes(),
                                     " bytes is not 64 lower-case hexadecimal digits and a size"));
}

absl::StatusOr<v1::Digest> ArtifactStore::Put(std::string_view bytes) {
  v1::Digest digest = DigestOf(bytes);
  MTMC_ASSIGN_OR_RETURN(const auto writer, CreateWriter(digest));
  MTMC_RETURN_IF_ERROR(writer->Append(bytes));
  MTMC_RETURN_IF_ERROR(writer->Finish());
  return digest;
}

std::vector<absl::StatusOr<v1::Digest>> ArtifactStore::PutAll(
    const std::vector<std::string>& blobs) {
  std::vector<absl::StatusOr<v1::Digest>> digests;
  digests.reserve(blobs.size());
  for (const std::string& blob : blobs) digests.push_back(Put(blob));
  return digests;
}

absl::StatusOr<std::string> ReadWhole(ArtifactStore& store, const v1::Digest& digest,
                                      int64_t max_bytes) {
  std::string bytes;
  const auto append = [&](const std::string& piece) {
    bytes += piece;
    if (static_cast<int64_t>(bytes.size()) <= max_bytes) return absl::OkStatus();
    return rpc::MakeError(absl::StatusCode::kFailedPrecondition, "ARTIFACT_TOO_LARGE",
                          absl::StrCat("artifact ", digest.sha256(), " has more than ", max_bytes,
                                       " bytes, the most that is read here"));
  };
  MTMC_RETURN_IF_ERROR(store.Read(digest, 0, append));
  return bytes;
}

}  // namespace mtmc::store
