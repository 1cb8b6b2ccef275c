// SPDX-License-Identifier: Apache-2.0
#include "server/store/metered_artifact_store.h"

#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "common/rpc/error.h"

namespace mtmc::store {
namespace {

constexpr char kCalls[] = "mtmc_artifact_calls_total";
constexpr char kCallsHelp[] = "Calls of the artifact store, by what came of them.";

std::string ResultOf(const absl::Status& status) {
  if (status.ok()) return "ok";
  const std::string reason = rpc::ErrorReason(status);
  if (reason == "ARTIFACT_NOT_FOUND") return "not_found";
  if (reason == "ARTIFACT_CORRUPT") return "corrupt";
  if (reason == "DISK_FULL") return "full";
  if (absl::IsInvalidArgument(status)) return "invalid";
  return absl::IsUnavailable(status) ? "unavailable" : "error";
}

// From its construction to its end.
class Call {
 public:
  Call(metrics::Registry& registry, const char* operation)
      : registry_(registry), operation_(operation), start_(absl::Now()) {}

  absl::Status End(const absl::Status& status) const {
    registry_
        .MakeCounter(kCalls, kCallsHelp, {{"operation", operation_}, {"result", ResultOf(status)}})
        .Increment();
    registry_
        .MakeHistogram("mtmc_artifact_call_seconds", "Time of a call of the artifact store.",
                       metrics::SecondsBuckets(), {{"operation", operation_}})
        .Observe(absl::ToDoubleSeconds(absl::Now() - start_));
    return status;
  }

 private:
  metrics::Registry& registry_;
  const char* const operation_;
  const absl::Time start_;
};

// An upload counts when it is whole.
class MeteredWriter final : public ArtifactWriter {
 public:
  MeteredWriter(std::unique_ptr<ArtifactWriter> writer, metrics::Registry& registry)
      : writer_(std::move(writer)), registry_(registry) {}

  absl::Status Append(std::string_view bytes) override { return writer_->Append(bytes); }

  absl::Status Finish() override {
    const Call call(registry_, "upload");
    return call.End(writer_->Finish());
  }

 private:
  const std::unique_ptr<ArtifactWriter> writer_;
  metrics::Registry& registry_;
};

}  // namespace

MeteredArtifactStore::MeteredArtifactStore(std::unique_ptr<ArtifactStore> store,
                                           metrics::Registry& registry)
    : store_(std::move(store)), registry_(registry) {
  // What alerts ask for exists from the start: a counter that begins with 1 has no rate.
  for (const char* result : {"corrupt", "unavailable", "full"}) {
    registry_.MakeCounter(kCalls, kCallsHelp, {{"operation", "read"}, {"result", result}});
  }
}

absl::StatusOr<std::unique_ptr<ArtifactWriter>> MeteredArtifactStore::CreateWriter(
    const v1::Digest& digest) {
  auto writer = store_->CreateWriter(digest);
  if (!writer.ok()) {
    return Call(registry_, "upload").End(writer.status());
  }
  return std::make_unique<MeteredWriter>(*std::move(writer), registry_);
}

std::vector<absl::StatusOr<v1::Digest>> MeteredArtifactStore::PutAll(
    const std::vector<std::string>& blobs) {
  const Call call(registry_, "upload");
  auto digests = store_->PutAll(blobs);
  for (const auto& digest : digests) call.End(digest.status()).IgnoreError();  // Counted only.
  return digests;
}

absl::StatusOr<bool> MeteredArtifactStore::Contains(const v1::Digest& digest) {
  const Call call(registry_, "contains");
  auto is_there = store_->Contains(digest);
  call.End(is_there.status()).IgnoreError();  // Counted only.
  return is_there;
}

absl::Status MeteredArtifactStore::Read(const v1::Digest& digest, int64_t offset,
                                        const ArtifactSink& sink) {
  const Call call(registry_, "read");
  return call.End(store_->Read(digest, offset, sink));
}

absl::Status MeteredArtifactStore::List(
    const std::function<absl::Status(const StoredBlob&)>& take) {
  const Call call(registry_, "list");
  return call.End(store_->List(take));
}

absl::Status MeteredArtifactStore::Remove(const v1::Digest& digest) {
  const Call call(registry_, "remove");
  return call.End(store_->Remove(digest));
}

absl::Status MeteredArtifactStore::CheckReady() { return store_->CheckReady(); }

void MeteredArtifactStore::Interrupt() { store_->Interrupt(); }

}  // namespace mtmc::store
