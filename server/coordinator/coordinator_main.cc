// SPDX-License-Identifier: Apache-2.0
//
// mtmc-coordinator: owns jobs, queue, leases and store.
#include <grpcpp/impl/service_type.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/executor.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/base/shutdown_signal.h"
#include "common/base/status_macros.h"
#include "common/daemon/clock_watch.h"
#include "common/daemon/core_dumps.h"
#include "common/daemon/endpoints.h"
#include "common/daemon/exit_code.h"
#include "common/daemon/flags.h"
#include "common/daemon/tracing.h"
#include "common/metrics/metrics.h"
#include "common/rpc/channel.h"
#include "common/rpc/error.h"
#include "server/coordinator/artifact_access.h"
#include "server/coordinator/clients.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/job_feed.h"
#include "server/coordinator/relay.h"
#include "server/coordinator/seat.h"
#include "server/coordinator/services.h"
#include "server/coordinator/stores.h"
#include "server/coordinator/tenure.h"
#include "server/store/fenced_job_store.h"
#include "server/store/postgres_listener.h"

namespace mtmc::coordinator {
namespace {

using base::Log;
using base::LogLevel;

// For calls in flight when the daemon is told to stop: watches and held calls
// are released first, and the others are short.
constexpr absl::Duration kShutdownGrace = absl::Milliseconds(500);

struct Flags {
  daemon::Flags daemon{.listen = "127.0.0.1:50151", .http = "127.0.0.1:9151"};
  StoreFlags stores;
  std::string advertise;
  int takeover_after_ms =
      static_cast<int>(absl::ToInt64Milliseconds(Succession::Options().patience));
  std::string policy = "127.0.0.1:50152";
  std::string gateway = "127.0.0.1:50153";
  std::string retention = "0";
  std::string log_retention = "24h";
  std::string artifact_retention = "0";
  bool is_sweep_trial = false;
  bool shares_across_projects = false;
  int lease_grace_ms = static_cast<int>(absl::ToInt64Milliseconds(LeaseManager::Options().grace));
};

std::optional<absl::Duration> ParseRetention(const std::string& text) {
  absl::Duration retention;
  if (!absl::ParseDuration(text, &retention) || retention < absl::ZeroDuration()) {
    return std::nullopt;
  }
  return retention;
}

// Of a flag that was checked.
absl::Duration RetentionOf(const std::string& text) {
  return ParseRetention(text).value_or(absl::ZeroDuration());
}

// What CLI11 wants of a check: what is wrong, or nothing.
std::string IsRetention(const std::string& text) {
  return ParseRetention(text) ? "" : "must be a duration such as 720h, or 0";
}

// Less than an upload and the creation of its job may take would remove what they need.
std::string IsArtifactRetention(const std::string& text) {
  const auto retention = ParseRetention(text);
  const bool is_enough =
      retention && (*retention == absl::ZeroDuration() || *retention >= absl::Hours(1));
  return is_enough ? "" : "must be a duration of at least 1h such as 168h, or 0";
}

void Declare(CLI::App& app, Flags& flags) {
  daemon::Declare(app, flags.daemon);
  daemon::DeclareChannels(app, flags.daemon);
  app.add_option("--data-dir", flags.stores.data_dir,
                 "folder of the store of one coordinator, with SQLite; made if it is missing");
  app.add_option("--store", flags.stores.store,
                 "instead: PostgreSQL database that several coordinators may share, "
                 "postgresql://USER@HOST/DATABASE")
      ->envname("MTMC_STORE")
      ->excludes("--data-dir");
  app.add_option("--artifacts", flags.stores.artifacts,
                 "s3://BUCKET/PREFIX, or a folder, which all coordinators of a --store see; "
                 "default: in --data-dir")
      ->envname("MTMC_ARTIFACTS");
  app.add_option("--advertise", flags.advertise,
                 "HOST:PORT at which the other coordinators of a --store reach this one; default: "
                 "where it listens");
  app.add_option("--takeover-after-ms", flags.takeover_after_ms,
                 "milliseconds of silence after which a coordinator of a --store takes over from "
                 "another")
      ->check(CLI::Range(500, 600'000))
      ->capture_default_str();
  app.add_option("--policy", flags.policy, "endpoint of mtmc-policyd")->capture_default_str();
  app.add_option("--gateway", flags.gateway, "endpoint of mtmc-gateway")->capture_default_str();
  app.add_option("--max-artifact-bytes", flags.stores.max_artifact_bytes,
                 "most bytes of all artifacts; 0 is what the disk has")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--max-database-bytes", flags.stores.max_database_bytes,
                 "most bytes of the database; 0 is what the disk has")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--retention", flags.retention,
                 "how long a job that has ended is kept, as 720h; 0 is for ever")
      ->check(IsRetention)
      ->capture_default_str();
  app.add_option("--log-retention", flags.log_retention,
                 "how long the log of a job that has ended keeps each state of its candidates, not "
                 "their last alone, as 24h; 0 is for ever")
      ->check(IsRetention)
      ->capture_default_str();
  app.add_option("--artifact-retention", flags.artifact_retention,
                 "how long an artifact that no job refers to is kept after it was written, as "
                 "168h; 0 is for ever")
      ->check(IsArtifactRetention)
      ->capture_default_str();
  app.add_flag("--artifact-retention-trial", flags.is_sweep_trial,
               "remove no artifact, and log those that --artifact-retention would remove");
  app.add_flag("--share-across-projects", flags.shares_across_projects,
               "let projects use each other's artifacts, evaluations and tuned records");
  app.add_option("--lease-grace-ms", flags.lease_grace_ms,
                 "milliseconds a worker may be late before its lease goes to another one")
      ->check(CLI::Range(100, 3'600'000))
      ->capture_default_str();
}

// What a Coordinator needs besides its store, for as long as the process lives.
struct Backends {
  Backends(const Flags& flags, metrics::Registry& registry)
      : metrics(registry),
        gateway(ConnectToGateway(flags.gateway, daemon::ChannelSecurityOf(flags.daemon))),
        policy(ConnectToPolicy(flags.policy, metrics, daemon::ChannelSecurityOf(flags.daemon))) {}

  base::RealClock clock;
  CoordinatorMetrics metrics;
  std::unique_ptr<search::MicroCoder> gateway;
  std::unique_ptr<search::MacroPolicy> policy;
};

// A Coordinator of one epoch. A store that is shared is its own that long.
struct Reign {
  std::unique_ptr<store::FencedJobStore> store;
  std::unique_ptr<Coordinator> coordinator;
};

absl::StatusOr<std::shared_ptr<Coordinator>> BeginReign(const Flags& flags, Stores& stores,
                                                        JobFeed& feed, Backends& backends,
                                                        int64_t epoch) {
  auto reign = std::make_shared<Reign>();
  if (stores.is_shared) {
    reign->store = std::make_unique<store::FencedJobStore>(*stores.jobs, epoch);
  }
  MTMC_ASSIGN_OR_RETURN(
      reign->coordinator,
      Coordinator::Create(
          {.leases = {.grace = absl::Milliseconds(flags.lease_grace_ms)},
           .search = {.shares_across_projects = flags.shares_across_projects},
           .retention = {.jobs = RetentionOf(flags.retention),
                         .logs = RetentionOf(flags.log_retention),
                         .artifacts = RetentionOf(flags.artifact_retention),
                         .is_artifact_trial = flags.is_sweep_trial}},
          {.store = stores.is_shared ? static_cast<store::JobStore&>(*reign->store) : *stores.jobs,
           .artifacts = *stores.artifacts,
           .coder = *backends.gateway,
           .policy = *backends.policy,
           .clock = backends.clock,
           .metrics = backends.metrics,
           .feed = feed}));
  return std::shared_ptr<Coordinator>(reign, reign->coordinator.get());
}

// Whoever listens everywhere cannot know by which name others reach it.
absl::StatusOr<std::string> AdvertisedAddress(const Flags& flags, const std::string& bound) {
  if (!flags.advertise.empty()) return flags.advertise;
  const std::string& listen = flags.daemon.listen;
  if (!absl::StartsWith(listen, "0.0.0.0:") && !absl::StartsWith(listen, "[::]:")) return bound;
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "ADDRESS_INVALID",
                        absl::StrCat("this coordinator listens at ", listen,
                                     "; say with --advertise HOST:PORT where others reach it"));
}

// A coordinator that does not own the jobs has no loop, and relays to whoever does.
absl::Status CheckOwner(const Seat& seat) {
  if (const auto coordinator = seat.local()) return coordinator->CheckLoop();
  if (!seat.remote().empty()) return absl::OkStatus();
  return absl::UnavailableError("nobody owns the jobs yet");
}

absl::Status CheckStore(store::JobStore& store) {
  const absl::Status status = store.LookupJob("projects/none/jobs/none").status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

// Jobs wait for a gateway that is gone, and the rules stand in for the policy service.
std::vector<metrics::Dependency> Dependencies(const Flags& flags, const Seat& seat,
                                              Stores& stores) {
  const rpc::ChannelSecurity security = daemon::ChannelSecurityOf(flags.daemon);
  return {{.name = "loop", .check = [&seat] { return CheckOwner(seat); }},
          {.name = "store", .check = [&stores] { return CheckStore(*stores.jobs); }},
          {.name = "artifacts", .check = [&stores] { return stores.artifacts->CheckReady(); }},
          {.name = "policy",
           .is_required = false,
           .check = rpc::WatchConnection(flags.policy, security)},
          {.name = "gateway",
           .is_required = false,
           .check = rpc::WatchConnection(flags.gateway, security)}};
}

int Serve(const Flags& flags, metrics::Registry& registry, Stores& stores,
          base::ShutdownSignal& shutdown) {
  Backends backends(flags, registry);
  const auto tracing = daemon::Tracing::Start(flags.daemon, "mtmc-coordinator", registry);
  if (!tracing.ok()) return daemon::FailUsage("unusable --otlp-endpoint", tracing.status());
  // Most of them wait: a creation for two commits behind those of all workers, a second under
  // load, of which 8 threads would let 8 be under way. Each may read through a connection of its
  // own: three coordinators have to go with the hundred that PostgreSQL allows.
  base::Executor executor({.name = "mtmc-calls", .num_threads = 16});
  // Apart, because artifacts may be a network away, and slow.
  base::Executor transfers({.name = "mtmc-artifacts", .num_threads = 8});
  // Apart, because watchers may be many and slow. One has one task at most, so that the queue is
  // as long as there are watchers.
  base::Executor watches({.name = "mtmc-watches", .num_threads = 8, .max_queued = 1'000'000});
  JobFeed feed(*stores.jobs, watches);
  Seat seat;
  // The own token would let in callers that have none.
  rpc::ChannelSecurity between = daemon::ChannelSecurityOf(flags.daemon);
  between.token_file.clear();
  Relay relay(seat, between);
  const Tenure::Begin begin = [&](int64_t epoch) {
    return BeginReign(flags, stores, feed, backends, epoch);
  };
  if (!stores.is_shared) {
    auto coordinator = begin(0);
    if (!coordinator.ok()) return daemon::Fail("cannot start", coordinator.status());
    seat.SetLocal(*std::move(coordinator));
  }
  const ArtifactAccess access(*stores.jobs, flags.shares_across_projects);
  const auto jobs = MakeJobService(relay, *stores.jobs, feed, executor, access);
  const auto candidates = MakeCandidateService(*stores.jobs, executor);
  const auto artifacts = MakeArtifactService(*stores.artifacts, transfers, access);
  const auto records = MakeRecordService(relay, *stores.jobs, executor);
  const auto quotas = MakeQuotaService(relay, *stores.jobs, executor);
  const auto workers = MakeWorkerService(relay, executor);
  const auto leases = MakeLeaseService(seat, relay);
  daemon::Endpoints::Options served{.services = {{jobs.get(), "mtmc.v1.JobService"},
                                                 {candidates.get(), "mtmc.v1.CandidateService"},
                                                 {artifacts.get(), "mtmc.v1.ArtifactService"},
                                                 {records.get(), "mtmc.v1.RecordService"},
                                                 {quotas.get(), "mtmc.v1.QuotaService"},
                                                 {workers.get(), "mtmc.v1.WorkerService"}},
                                    .dependencies = Dependencies(flags, seat, stores)};
  for (const auto& service : served.services) served.rest_services.push_back(service.name);
  // Between machines alone.
  served.services.push_back({leases.get(), "mtmc.v1.LeaseService"});
  const auto endpoints = daemon::Endpoints::Open(flags.daemon, registry, served);
  if (!endpoints.ok()) return daemon::Fail("cannot serve", endpoints.status());
  std::unique_ptr<store::PostgresListener> listener;
  std::optional<Tenure> tenure;
  if (stores.is_shared) {
    const auto address = AdvertisedAddress(flags, (*endpoints)->grpc_address());
    if (!address.ok()) return daemon::Fail("cannot serve", address.status());
    auto opened =
        store::PostgresListener::Open(flags.stores.store, {.on_events =
                                                               [&](const std::string& job) {
                                                                 // The owner has told its watchers
                                                                 // by itself.
                                                                 if (seat.local() == nullptr)
                                                                   feed.Notify(job);
                                                               },
                                                           .on_gap = [&] { feed.NotifyAll(); }});
    if (!opened.ok()) return daemon::Fail("cannot listen for events", opened.status());
    listener = *std::move(opened);
    tenure.emplace(
        Tenure::Options{.succession = {.name = base::MakeUuid4(),
                                       .address = *address,
                                       .patience = absl::Milliseconds(flags.takeover_after_ms)},
                        .beat = absl::Milliseconds(flags.takeover_after_ms) / 5},
        *stores.jobs, seat, begin);
  }
  Log(LogLevel::kInfo, "serving", {{"grpc", (*endpoints)->grpc_address()}, {"data", stores.shown}});
  shutdown.Wait();
  // Order: no new calls, no turn of a search, no task that reads for a call.
  feed.Close();
  stores.artifacts->Interrupt();
  if (const auto coordinator = seat.local()) coordinator->ReleaseCalls();
  (*endpoints)->Shutdown(absl::Now() + kShutdownGrace);
  if (tenure) tenure->End();
  if (const auto coordinator = seat.local()) coordinator->Stop();
  listener.reset();
  executor.Drain(absl::Now() + kShutdownGrace);
  watches.Drain(absl::Now() + kShutdownGrace);
  transfers.Drain(absl::Now() + kShutdownGrace);
  return 0;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Owns the jobs of mtmc, their search, and the workers' leases.", "mtmc-coordinator");
  Declare(app, flags);
  if (const auto code = daemon::ParseAndInitLogging(app, argc, argv, flags.daemon)) return *code;
  // The packaged library looks for cycles of locks at each of them, gRPC's too; that is for tests.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  daemon::ForbidCoreDumps();
  for (const std::string& endpoint : {flags.policy, flags.gateway}) {
    const absl::Status security = rpc::Check(daemon::ChannelSecurityOf(flags.daemon), endpoint);
    if (!security.ok()) return daemon::FailUsage("cannot secure channels", security);
  }
  base::ShutdownSignal shutdown;
  const daemon::ClockWatch clock_watch(shutdown.token());
  metrics::Registry registry("mtmc-coordinator");
  flags.stores.is_insecure = flags.daemon.is_insecure;
  flags.stores.is_swept = RetentionOf(flags.artifact_retention) > absl::ZeroDuration();
  absl::StatusOr<Stores> stores = AwaitStores(flags.stores, registry, shutdown);
  if (!stores.ok()) return daemon::Fail("cannot open the store", stores.status());
  return Serve(flags, registry, *stores, shutdown);
}

}  // namespace
}  // namespace mtmc::coordinator

int main(int argc, char** argv) { return mtmc::coordinator::Main(argc, argv); }
