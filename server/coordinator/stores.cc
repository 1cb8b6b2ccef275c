// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/stores.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/s3/client.h"
#include "server/s3/settings.h"
#include "server/store/file_artifact_store.h"
#include "server/store/metered_artifact_store.h"
#include "server/store/postgres_job_store.h"
#include "server/store/promised_artifact_store.h"
#include "server/store/s3_artifact_store.h"
#include "server/store/sqlite_job_store.h"

namespace mtmc::coordinator {
namespace {

// From an answer that a blob is there to the commit of what refers to it: seconds, or
// minutes where the database is away. Each promise is remembered for so long.
constexpr absl::Duration kPromise = absl::Minutes(15);

// Longer than a database takes to restart; whoever mistyped its address waits no longer.
constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr absl::Duration kMinBackoff = absl::Milliseconds(250);
constexpr absl::Duration kMaxBackoff = absl::Seconds(2);

absl::Status InvalidFlags(const std::string& message) {
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_STORE", message);
}

absl::Status CheckFlags(const StoreFlags& flags) {
  if (flags.store.empty()) {
    if (!flags.data_dir.empty()) return absl::OkStatus();
    return InvalidFlags("give --data-dir FOLDER for SQLite, or --store postgresql://... ");
  }
  if (!flags.artifacts.empty()) return absl::OkStatus();
  return InvalidFlags(
      "--store needs --artifacts: s3://BUCKET/PREFIX, or a folder that every coordinator of this "
      "store sees");
}

absl::StatusOr<std::unique_ptr<store::ArtifactStore>> OpenArtifacts(const std::string& where,
                                                                    const StoreFlags& flags,
                                                                    metrics::Registry& registry) {
  if (!absl::StrContains(where, "://")) {
    return store::FileArtifactStore::Open(where, {.max_bytes = flags.max_artifact_bytes});
  }
  MTMC_ASSIGN_OR_RETURN(s3::Settings settings, s3::ParseSettings(where, flags.is_insecure));
  if (flags.max_artifact_bytes > 0) {
    return InvalidFlags(
        "--max-artifact-bytes is for a folder; limit a bucket where it is, by its quota");
  }
  MTMC_ASSIGN_OR_RETURN(auto client, s3::Client::Create(std::move(settings), {}, registry));
  return store::S3ArtifactStore::Open(std::move(client), {});
}

}  // namespace

absl::StatusOr<Stores> OpenStores(const StoreFlags& flags, metrics::Registry& registry) {
  MTMC_RETURN_IF_ERROR(CheckFlags(flags));
  Stores stores;
  std::string artifacts = flags.artifacts;
  if (flags.store.empty()) {
    MTMC_ASSIGN_OR_RETURN(stores.directory, store::DataDirectory::Open(flags.data_dir));
    MTMC_ASSIGN_OR_RETURN(stores.jobs,
                          store::SqliteJobStore::Open(stores.directory->database_path(),
                                                      {.max_bytes = flags.max_database_bytes}));
    if (artifacts.empty()) artifacts = stores.directory->artifacts_path();
    stores.shown = flags.data_dir;
  } else {
    MTMC_ASSIGN_OR_RETURN(stores.shown, store::ShownPostgresAddress(flags.store));
    MTMC_ASSIGN_OR_RETURN(stores.jobs, store::PostgresJobStore::Open(flags.store));
    stores.is_shared = true;
  }
  MTMC_ASSIGN_OR_RETURN(auto blobs, OpenArtifacts(artifacts, flags, registry));
  stores.artifacts = std::make_unique<store::MeteredArtifactStore>(std::move(blobs), registry);
  if (flags.is_swept) {
    static const base::RealClock clock;
    const auto forget = [jobs = stores.jobs.get()](const std::string& sha256) {
      return jobs->RemoveUploads(sha256);
    };
    stores.artifacts = std::make_unique<store::PromisedArtifactStore>(std::move(stores.artifacts),
                                                                      kPromise, clock, forget);
  }
  return stores;
}

absl::StatusOr<Stores> AwaitStores(const StoreFlags& flags, metrics::Registry& registry,
                                   const base::ShutdownSignal& shutdown) {
  const absl::Time end = absl::Now() + kPatience;
  absl::Duration backoff = kMinBackoff;
  while (true) {
    absl::StatusOr<Stores> stores = OpenStores(flags, registry);
    if (!absl::IsUnavailable(stores.status()) || absl::Now() >= end) return stores;
    if (backoff == kMinBackoff) {
      base::Log(base::LogLevel::kWarning, "waits for the store", {{"error", stores.status()}});
    }
    if (shutdown.WaitUntil(absl::Now() + backoff)) return stores.status();
    backoff = std::min(2 * backoff, kMaxBackoff);
  }
}

}  // namespace mtmc::coordinator
