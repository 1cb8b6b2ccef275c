// SPDX-License-Identifier: Apache-2.0
#include "server/store/promised_artifact_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"

namespace mtmc::store {

// Promises the blob before it is stored, so that it is never there without a promise.
class PromisedArtifactWriter final : public ArtifactWriter {
 public:
  PromisedArtifactWriter(PromisedArtifactStore& store, std::string sha256,
                         std::unique_ptr<ArtifactWriter> writer)
      : store_(store), sha256_(std::move(sha256)), writer_(std::move(writer)) {}

  absl::Status Append(std::string_view bytes) override { return writer_->Append(bytes); }

  absl::Status Finish() override {
    store_.Promise(sha256_);
    return writer_->Finish();
  }

 private:
  PromisedArtifactStore& store_;
  const std::string sha256_;
  const std::unique_ptr<ArtifactWriter> writer_;
};

PromisedArtifactStore::PromisedArtifactStore(std::unique_ptr<ArtifactStore> store,
                                             absl::Duration kept, const base::Clock& clock,
                                             Forget forget)
    : store_(std::move(store)), kept_(kept), clock_(clock), forget_(std::move(forget)) {}

void PromisedArtifactStore::Promise(const std::string& sha256) {
  const absl::Time now = clock_.Now();
  const auto is_free = [this, &sha256]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !removed_now_.contains(sha256);
  };
  const absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&is_free));
  promises_[sha256] = now;
  ForgetOld(now);
}

void PromisedArtifactStore::ForgetOld(absl::Time now) {
  if (now < next_forgetting_) return;
  next_forgetting_ = now + kept_ / 4;
  std::erase_if(promises_, [&](const auto& entry) { return entry.second + kept_ < now; });
}

absl::StatusOr<std::unique_ptr<ArtifactWriter>> PromisedArtifactStore::CreateWriter(
    const v1::Digest& digest) {
  MTMC_RETURN_IF_ERROR(CheckDigest(digest));
  Promise(digest.sha256());
  MTMC_ASSIGN_OR_RETURN(auto writer, store_->CreateWriter(digest));
  return std::make_unique<PromisedArtifactWriter>(*this, digest.sha256(), std::move(writer));
}

std::vector<absl::StatusOr<v1::Digest>> PromisedArtifactStore::PutAll(
    const std::vector<std::string>& blobs) {
  for (const std::string& blob : blobs) Promise(DigestOf(blob).sha256());
  auto digests = store_->PutAll(blobs);
  // Anew, for that may have taken long.
  for (const auto& digest : digests) {
    if (digest.ok()) Promise(digest->sha256());
  }
  return digests;
}

absl::StatusOr<bool> PromisedArtifactStore::Contains(const v1::Digest& digest) {
  MTMC_RETURN_IF_ERROR(CheckDigest(digest));
  Promise(digest.sha256());
  return store_->Contains(digest);
}

absl::Status PromisedArtifactStore::Read(const v1::Digest& digest, int64_t offset,
                                         const ArtifactSink& sink) {
  return store_->Read(digest, offset, sink);
}

absl::Status PromisedArtifactStore::List(
    const std::function<absl::Status(const StoredBlob&)>& take) {
  return store_->List(take);
}

absl::Status PromisedArtifactStore::Remove(const v1::Digest& digest) {
  {
    const absl::MutexLock lock(&mu_);
    const auto promise = promises_.find(digest.sha256());
    if (promise != promises_.end() && clock_.Now() <= promise->second + kept_) {
      return rpc::MakeError(
          absl::StatusCode::kFailedPrecondition, "ARTIFACT_PROMISED",
          absl::StrCat("artifact ", digest.sha256(), " was asked for a short time ago"));
    }
    removed_now_.insert(digest.sha256());
  }
  absl::Status status = forget_ ? forget_(digest.sha256()) : absl::OkStatus();
  if (status.ok()) status = store_->Remove(digest);
  const absl::MutexLock lock(&mu_);
  removed_now_.erase(digest.sha256());
  return status;
}

absl::Status PromisedArtifactStore::CheckReady() { return store_->CheckReady(); }

void PromisedArtifactStore::Interrupt() { store_->Interrupt(); }

}  // namespace mtmc::store
