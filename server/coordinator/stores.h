// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/shutdown_signal.h"
#include "common/metrics/metrics.h"
#include "server/store/artifact_store.h"
#include "server/store/data_directory.h"
#include "server/store/sql_job_store.h"

namespace mtmc::coordinator {

// Where a coordinator keeps what must survive it. Private to mtmc-coordinator.
struct StoreFlags {
  // Of a coordinator with SQLite: its own folder.
  std::string data_dir;
  // Address of a PostgreSQL database that several share; empty is SQLite.
  std::string store;
  // Folder of the artifacts, or `s3://BUCKET/PREFIX`; empty is a folder in `data_dir`.
  std::string artifacts;
  // Artifacts that nothing refers to will be removed.
  bool is_swept = false;
  // Lets artifacts go to a server of S3 on another host without TLS.
  bool is_insecure = false;
  int64_t max_artifact_bytes = 0;
  int64_t max_database_bytes = 0;
};

struct Stores {
  std::unique_ptr<store::DataDirectory> directory;
  std::unique_ptr<store::SqlJobStore> jobs;
  std::unique_ptr<store::ArtifactStore> artifacts;
  // For people, without a password.
  std::string shown;
  // Other coordinators may use it at the same time.
  bool is_shared = false;
};

// INVALID_ARGUMENT with reason INVALID_STORE for flags that do not go together; else
// the errors of the stores. The registry is borrowed, for what is counted of the artifacts.
absl::StatusOr<Stores> OpenStores(const StoreFlags& flags, metrics::Registry& registry);

// The same for a daemon that may be started before its database, as after a power cut: while
// that is UNAVAILABLE it is tried again, for half a minute or until a stop is requested.
absl::StatusOr<Stores> AwaitStores(const StoreFlags& flags, metrics::Registry& registry,
                                   const base::ShutdownSignal& shutdown);

}  // namespace mtmc::coordinator
