// SPDX-License-Identifier: Apache-2.0
#include "server/store/s3_artifact_store.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/s3/answer.h"

namespace mtmc::store {
namespace {

constexpr int64_t kMaxParts = 10'000;

std::string HeaderOf(const s3::Response& response, const char* name) {
  const auto found = response.headers.find(name);
  return found == response.headers.end() ? "" : found->second;
}

// How many bytes the object has of which a range came: `bytes 0-4/5`.
absl::StatusOr<int64_t> TotalOf(const s3::Response& response) {
  const std::string range = HeaderOf(response, "content-range");
  const size_t slash = range.rfind('/');
  int64_t total = 0;
  if (slash != std::string::npos && absl::SimpleAtoi(range.substr(slash + 1), &total)) return total;
  // A server that knows no ranges sends all.
  if (response.status == 200) return static_cast<int64_t>(response.body.size());
  return absl::DataLossError(absl::StrCat("S3 sends a part of unknown place, \"", range, "\""));
}

}  // namespace

// Of a blob of one part, sends it at the end. Of a blob that is stored already, only
// checks what comes.
class S3ArtifactWriter final : public ArtifactWriter {
 public:
  S3ArtifactWriter(S3ArtifactStore& store, v1::Digest digest, bool is_stored)
      : store_(store),
        digest_(std::move(digest)),
        is_stored_(is_stored),
        part_bytes_(
            std::max(store.options_.part_bytes, digest_.size_bytes() / (kMaxParts - 1) + 1)) {}

  ~S3ArtifactWriter() override {
    if (upload_.empty()) return;
    // What cannot be dropped now costs room until the bucket's rule for such drops it.
    const auto dropped = store_.client_->Send(
        {.method = "DELETE", .key = store_.KeyOf(digest_), .query = {{"uploadId", upload_}}});
    if (!dropped.ok()) {
      base::Log(base::LogLevel::kWarning, "parts of an upload stay in the bucket",
                {{"sha256", digest_.sha256()}, {"error", dropped.status()}});
    }
  }

  S3ArtifactWriter(const S3ArtifactWriter&) = delete;
  S3ArtifactWriter& operator=(const S3ArtifactWriter&) = delete;

  absl::Status Append(std::string_view bytes) override {
    if (size_ + static_cast<int64_t>(bytes.size()) > digest_.size_bytes())
      return DigestMismatch(digest_);
    size_ += static_cast<int64_t>(bytes.size());
    hash_.Append(bytes);
    if (is_stored_) return absl::OkStatus();
    while (!bytes.empty()) {
      // The last part is sent at the end, when all is known to be right.
      if (static_cast<int64_t>(part_.size()) == part_bytes_) MTMC_RETURN_IF_ERROR(SendPart());
      const size_t taken = std::min(bytes.size(), static_cast<size_t>(part_bytes_) - part_.size());
      part_.append(bytes.substr(0, taken));
      bytes.remove_prefix(taken);
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    if (size_ != digest_.size_bytes() || hash_.Finish().sha256_hex != digest_.sha256()) {
      return DigestMismatch(digest_);
    }
    if (is_stored_) return absl::OkStatus();
    if (upload_.empty()) {
      MTMC_RETURN_IF_ERROR(
          Ask({.method = "PUT", .key = Key(), .body = part_, .sha256 = digest_.sha256()}).status());
    } else {
      MTMC_RETURN_IF_ERROR(SendPart());
      MTMC_RETURN_IF_ERROR(Complete());
    }
    store_.damaged_.Remove(digest_.sha256());
    return absl::OkStatus();
  }

 private:
  std::string Key() const { return store_.KeyOf(digest_); }

  // A response of success.
  absl::StatusOr<s3::Response> Ask(const s3::Request& request) {
    MTMC_ASSIGN_OR_RETURN(s3::Response response, store_.client_->Send(request));
    if (response.status >= 200 && response.status < 300) return response;
    return rpc::MakeError(
        absl::StatusCode::kUnavailable, "S3_UNAVAILABLE",
        absl::StrCat("S3 has dropped an upload (", response.status, "); send the artifact again"));
  }

  absl::Status SendPart() {
    if (upload_.empty()) {
      MTMC_ASSIGN_OR_RETURN(const s3::Response begun,
                            Ask({.method = "POST", .key = Key(), .query = {{"uploads", ""}}}));
      MTMC_ASSIGN_OR_RETURN(upload_, s3::ParseUploadId(begun.body));
    }
    const std::string number = absl::StrCat(tags_.size() + 1);
    MTMC_ASSIGN_OR_RETURN(const s3::Response sent,
                          Ask({.method = "PUT",
                               .key = Key(),
                               .query = {{"partNumber", number}, {"uploadId", upload_}},
                               .body = part_}));
    tags_.push_back(HeaderOf(sent, "etag"));
    part_.clear();
    return absl::OkStatus();
  }

  absl::Status Complete() {
    std::string body = "<CompleteMultipartUpload>";
    for (size_t i = 0; i < tags_.size(); ++i) {
      absl::StrAppend(&body, "<Part><PartNumber>", i + 1, "</PartNumber><ETag>", tags_[i],
                      "</ETag></Part>");
    }
    body += "</CompleteMultipartUpload>";
    const absl::Status status =
        Ask({.method = "POST", .key = Key(), .query = {{"uploadId", upload_}}, .body = body})
            .status();
    if (status.ok()) {
      upload_.clear();
      return status;
    }
    // The answer may have been lost, and the upload be gone because it is whole.
    const auto is_there = store_.Contains(digest_);
    if (!is_there.ok() || !*is_there) return status;
    upload_.clear();
    return absl::OkStatus();
  }

  S3ArtifactStore& store_;
  const v1::Digest digest_;
  const bool is_stored_;
  const int64_t part_bytes_;
  base::Sha256Builder hash_;
  int64_t size_ = 0;
  std::string part_;
  // Of a multipart upload that has begun.
  std::string upload_;
  std::vector<std::string> tags_;
};

absl::StatusOr<std::unique_ptr<S3ArtifactStore>> S3ArtifactStore::Open(
    std::unique_ptr<s3::Client> client, const Options& options) {
  auto store = std::unique_ptr<S3ArtifactStore>(new S3ArtifactStore(std::move(client), options));
  const absl::Status status = store->Probe();
  const bool is_passing = rpc::ErrorReason(status) == "S3_UNAVAILABLE";
  if (!status.ok() && !is_passing) return status;
  store->ready_ = status;
  store->prober_ = std::jthread([self = store.get()] { self->ProbeAgainAndAgain(); });
  return store;
}

S3ArtifactStore::S3ArtifactStore(std::unique_ptr<s3::Client> client, const Options& options)
    : client_(std::move(client)), options_(options) {}

S3ArtifactStore::~S3ArtifactStore() { Interrupt(); }

std::string S3ArtifactStore::KeyOf(const v1::Digest& digest) const {
  return absl::StrCat(client_->settings().prefix, digest.sha256().substr(0, 2), "/",
                      digest.sha256());
}

absl::StatusOr<std::unique_ptr<ArtifactWriter>> S3ArtifactStore::CreateWriter(
    const v1::Digest& digest) {
  MTMC_ASSIGN_OR_RETURN(const bool is_stored, Contains(digest));
  return std::make_unique<S3ArtifactWriter>(*this, digest, is_stored);
}

absl::StatusOr<bool> S3ArtifactStore::Contains(const v1::Digest& digest) {
  MTMC_RETURN_IF_ERROR(CheckDigest(digest));
  if (damaged_.Contains(digest.sha256())) return false;
  MTMC_ASSIGN_OR_RETURN(const s3::Response response,
                        client_->Send({.method = "HEAD", .key = KeyOf(digest)}));
  if (response.status != 200) return false;
  return digest.size_bytes() == 0 ||
         HeaderOf(response, "content-length") == absl::StrCat(digest.size_bytes());
}

absl::Status S3ArtifactStore::Read(const v1::Digest& digest, int64_t offset,
                                   const ArtifactSink& sink) {
  MTMC_RETURN_IF_ERROR(CheckDigest(digest));
  CheckedReading reading(digest, offset, sink, damaged_);
  int64_t at = 0;
  std::string tag;
  while (true) {
    s3::Request request{.method = "GET", .key = KeyOf(digest)};
    request.headers.push_back(absl::StrCat("Range: bytes=", at, "-", at + options_.part_bytes - 1));
    if (!tag.empty()) request.headers.push_back(absl::StrCat("If-Match: ", tag));
    MTMC_ASSIGN_OR_RETURN(const s3::Response response, client_->Send(request));
    if (response.status == 404) return ArtifactNotFound(digest);
    if (response.status == 412) {
      return absl::UnavailableError(
          absl::StrCat("artifact ", digest.sha256(), " was written while it was read; try again"));
    }
    // Nothing has no first byte to ask for.
    if (response.status == 416) return reading.Finish();
    MTMC_ASSIGN_OR_RETURN(const int64_t total, TotalOf(response));
    MTMC_RETURN_IF_ERROR(reading.Add(response.body));
    at += static_cast<int64_t>(response.body.size());
    if (at >= total || response.body.empty()) return reading.Finish();
    tag = HeaderOf(response, "etag");
  }
}

absl::Status S3ArtifactStore::List(const std::function<absl::Status(const StoredBlob&)>& take) {
  std::map<std::string, std::string> query = {{"list-type", "2"},
                                              {"prefix", client_->settings().prefix}};
  while (true) {
    MTMC_ASSIGN_OR_RETURN(const s3::Response response,
                          client_->Send({.method = "GET", .query = query}));
    MTMC_ASSIGN_OR_RETURN(const s3::Listing listing, s3::ParseListing(response.body));
    for (const s3::Object& object : listing.objects) {
      StoredBlob blob{.digest = {}, .modified = object.modified};
      blob.digest.set_sha256(object.key.substr(object.key.rfind('/') + 1));
      blob.digest.set_size_bytes(object.size_bytes);
      // Another prefix may lie below this one.
      const bool is_blob = CheckDigest(blob.digest).ok() && object.key == KeyOf(blob.digest);
      if (is_blob) MTMC_RETURN_IF_ERROR(take(blob));
    }
    if (listing.continuation.empty()) return absl::OkStatus();
    query["continuation-token"] = listing.continuation;
  }
}

absl::Status S3ArtifactStore::Remove(const v1::Digest& digest) {
  MTMC_RETURN_IF_ERROR(CheckDigest(digest));
  MTMC_RETURN_IF_ERROR(client_->Send({.method = "DELETE", .key = KeyOf(digest)}).status());
  damaged_.Remove(digest.sha256());
  return absl::OkStatus();
}

absl::Status S3ArtifactStore::Probe() {
  MTMC_ASSIGN_OR_RETURN(const s3::Response response,
                        client_->Send({.method = "GET",
                                       .query = {{"list-type", "2"},
                                                 {"max-keys", "1"},
                                                 {"prefix", client_->settings().prefix}}}));
  return s3::ParseListing(response.body).status();
}

void S3ArtifactStore::ProbeAgainAndAgain() {
  while (true) {
    {
      const absl::MutexLock lock(&mu_);
      const absl::Duration wait =
          ready_.ok() ? options_.probe_interval : options_.probe_interval_away;
      if (mu_.AwaitWithTimeout(absl::Condition(&is_ending_), wait)) return;
    }
    const absl::Status status = Probe();
    const absl::MutexLock lock(&mu_);
    ready_ = status;
  }
}

absl::Status S3ArtifactStore::CheckReady() {
  const absl::MutexLock lock(&mu_);
  return ready_;
}

void S3ArtifactStore::Interrupt() {
  client_->Interrupt();
  const absl::MutexLock lock(&mu_);
  is_ending_ = true;
}

}  // namespace mtmc::store
