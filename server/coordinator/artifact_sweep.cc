// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/artifact_sweep.h"

#include <map>
#include <string>

#include "absl/strings/escaping.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/store/artifact_uses.h"

namespace mtmc::coordinator {
namespace {

using base::Log;
using base::LogLevel;

constexpr int kPageSize = 200;

// Sizes of blobs by the 32 bytes of their digest: millions fit into memory.
using Blobs = std::map<std::string, int64_t>;

std::string KeyOf(const v1::Digest& digest) { return absl::HexStringToBytes(digest.sha256()); }

absl::Status StrikeCandidates(store::JobStore& jobs, const std::string& job, Blobs& blobs,
                              const std::atomic<bool>& is_stopped) {
  store::CandidateQuery query{.job = job, .page_size = kPageSize};
  do {
    if (is_stopped) return absl::CancelledError("the coordinator ends");
    MTMC_ASSIGN_OR_RETURN(const store::CandidatePage page, jobs.ListCandidates(query));
    for (const v1::Candidate& candidate : page.candidates) {
      for (const v1::Digest* digest : store::ArtifactsOf(candidate)) blobs.erase(KeyOf(*digest));
    }
    query.page_token = page.next_page_token;
  } while (!query.page_token.empty());
  return absl::OkStatus();
}

absl::Status StrikeReferences(store::JobStore& jobs, Blobs& blobs,
                              const std::atomic<bool>& is_stopped) {
  // By creation: a job keeps its place while its pages are read.
  store::JobQuery query{.page_size = kPageSize};
  do {
    MTMC_ASSIGN_OR_RETURN(const store::JobPage page, jobs.ListJobs(query));
    for (const v1::Job& job : page.jobs) {
      blobs.erase(KeyOf(job.problem().source()));
      blobs.erase(KeyOf(job.start_program()));
      MTMC_RETURN_IF_ERROR(StrikeCandidates(jobs, job.name(), blobs, is_stopped));
    }
    query.page_token = page.next_page_token;
  } while (!query.page_token.empty());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SweptArtifacts> ArtifactSweep::Run(absl::Time now) const {
  SweptArtifacts swept;
  Blobs blobs;
  MTMC_RETURN_IF_ERROR(artifacts.List([&](const store::StoredBlob& blob) {
    ++swept.num_blobs;
    swept.num_bytes += blob.digest.size_bytes();
    if (blob.modified + retention < now) blobs[KeyOf(blob.digest)] = blob.digest.size_bytes();
    return is_stopped ? absl::CancelledError("the coordinator ends") : absl::OkStatus();
  }));
  if (!blobs.empty()) MTMC_RETURN_IF_ERROR(StrikeReferences(jobs, blobs, is_stopped));
  for (const auto& [key, size] : blobs) {
    if (is_stopped) return absl::CancelledError("the coordinator ends");
    v1::Digest digest;
    digest.set_sha256(absl::BytesToHexString(key));
    digest.set_size_bytes(size);
    if (is_trial) {
      Log(LogLevel::kInfo, "artifact would be removed",
          {{"sha256", digest.sha256()}, {"bytes", size}});
    } else {
      const absl::Status status = artifacts.Remove(digest);
      if (rpc::ErrorReason(status) == "ARTIFACT_PROMISED") continue;
      MTMC_RETURN_IF_ERROR(status);
    }
    ++swept.num_removed;
    swept.num_removed_bytes += size;
  }
  return swept;
}

}  // namespace mtmc::coordinator
