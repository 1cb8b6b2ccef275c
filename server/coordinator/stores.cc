// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/stores.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/store/file_artifact_store.h"
#include "server/store/postgres_job_store.h"
#include "server/store/sqlite_job_store.h"

namespace mtmc::coordinator {
namespace {

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
      "--store needs --artifacts: a folder that every coordinator of this store sees");
}

}  // namespace

absl::StatusOr<Stores> OpenStores(const StoreFlags& flags) {
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
  MTMC_ASSIGN_OR_RETURN(stores.artifacts, store::FileArtifactStore::Open(
                                              artifacts, {.max_bytes = flags.max_artifact_bytes}));
  return stores;
}

}  // namespace mtmc::coordinator
