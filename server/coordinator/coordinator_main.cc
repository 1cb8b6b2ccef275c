// SPDX-License-Identifier: Apache-2.0
//
// mtmc-coordinator: owns jobs, queue, leases and store.
#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/executor.h"
#include "common/base/log.h"
#include "common/base/shutdown_signal.h"
#include "common/base/status_macros.h"
#include "common/daemon/endpoints.h"
#include "common/daemon/exit_code.h"
#include "common/daemon/flags.h"
#include "common/metrics/metrics.h"
#include "server/coordinator/clients.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/services.h"
#include "server/store/data_directory.h"
#include "server/store/file_artifact_store.h"
#include "server/store/sqlite_job_store.h"

namespace mtmc::coordinator {
namespace {

using base::Log;
using base::LogLevel;

// For calls in flight when the daemon is told to stop: watches and held calls
// are released first, and the others are short.
constexpr absl::Duration kShutdownGrace = absl::Milliseconds(500);

struct Flags {
  daemon::Flags daemon{.listen = "127.0.0.1:50151", .http = "127.0.0.1:9151"};
  std::string data_dir;
  std::string policy = "127.0.0.1:50152";
  std::string gateway = "127.0.0.1:50153";
  int64_t max_artifact_bytes = 0;
  int64_t max_database_bytes = 0;
  int lease_grace_ms = static_cast<int>(absl::ToInt64Milliseconds(LeaseManager::Options().grace));
};

void Declare(CLI::App& app, Flags& flags) {
  daemon::Declare(app, flags.daemon);
  app.add_option("--data-dir", flags.data_dir, "folder of the store; made if it is missing")
      ->required();
  app.add_option("--policy", flags.policy, "endpoint of mtmc-policyd")->capture_default_str();
  app.add_option("--gateway", flags.gateway, "endpoint of mtmc-gateway")->capture_default_str();
  app.add_option("--max-artifact-bytes", flags.max_artifact_bytes,
                 "most bytes of all artifacts; 0 is what the disk has")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--max-database-bytes", flags.max_database_bytes,
                 "most bytes of the database; 0 is what the disk has")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--lease-grace-ms", flags.lease_grace_ms,
                 "milliseconds a worker may be late before its lease goes to another one")
      ->check(CLI::Range(100, 3'600'000))
      ->capture_default_str();
}

// The three parts of a data directory, opened together.
struct Stores {
  std::unique_ptr<store::DataDirectory> directory;
  std::unique_ptr<store::SqliteJobStore> jobs;
  std::unique_ptr<store::FileArtifactStore> artifacts;
};

absl::StatusOr<Stores> OpenStores(const Flags& flags) {
  Stores stores;
  MTMC_ASSIGN_OR_RETURN(stores.directory, store::DataDirectory::Open(flags.data_dir));
  MTMC_ASSIGN_OR_RETURN(stores.jobs,
                        store::SqliteJobStore::Open(stores.directory->database_path(),
                                                    {.max_bytes = flags.max_database_bytes}));
  MTMC_ASSIGN_OR_RETURN(stores.artifacts,
                        store::FileArtifactStore::Open(stores.directory->artifacts_path(),
                                                       {.max_bytes = flags.max_artifact_bytes}));
  return stores;
}

int Serve(const Flags& flags, Stores& stores, base::ShutdownSignal& shutdown) {
  const base::RealClock clock;
  metrics::Registry registry("mtmc-coordinator");
  CoordinatorMetrics metrics(registry);
  const auto gateway = ConnectToGateway(flags.gateway);
  const auto policy = ConnectToPolicy(flags.policy, metrics);
  base::Executor executor({.name = "mtmc-calls", .num_threads = 8});
  auto coordinator =
      Coordinator::Create({.leases = {.grace = absl::Milliseconds(flags.lease_grace_ms)}},
                          {.store = *stores.jobs,
                           .artifacts = *stores.artifacts,
                           .coder = *gateway,
                           .policy = *policy,
                           .clock = clock,
                           .executor = executor,
                           .metrics = metrics});
  if (!coordinator.ok()) return daemon::Fail("cannot start", coordinator.status());
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(MakeJobService(**coordinator, executor));
  services.push_back(MakeCandidateService(*stores.jobs, executor));
  services.push_back(MakeArtifactService(*stores.artifacts, executor));
  services.push_back(MakeWorkerService(**coordinator, executor));
  services.push_back(MakeLeaseService(**coordinator));
  daemon::Endpoints::Options served;
  for (const auto& service : services) served.services.push_back(service.get());
  const auto endpoints = daemon::Endpoints::Open(flags.daemon, registry, served);
  if (!endpoints.ok()) return daemon::Fail("cannot serve", endpoints.status());
  Log(LogLevel::kInfo, "serving",
      {{"grpc", (*endpoints)->grpc_address()}, {"data", flags.data_dir}});
  shutdown.Wait();
  // Order: no new calls, no turn of a search, no task that reads for a call.
  (*coordinator)->ReleaseCalls();
  (*endpoints)->Shutdown(absl::Now() + kShutdownGrace);
  (*coordinator)->Stop();
  executor.Drain(absl::Now() + kShutdownGrace);
  return 0;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Owns the jobs of mtmc, their search, and the workers' leases.", "mtmc-coordinator");
  Declare(app, flags);
  if (const auto code = daemon::ParseAndInitLogging(app, argc, argv, flags.daemon)) return *code;
  base::ShutdownSignal shutdown;
  absl::StatusOr<Stores> stores = OpenStores(flags);
  if (!stores.ok()) return daemon::Fail("cannot open the data directory", stores.status());
  return Serve(flags, *stores, shutdown);
}

}  // namespace
}  // namespace mtmc::coordinator

int main(int argc, char** argv) { return mtmc::coordinator::Main(argc, argv); }
