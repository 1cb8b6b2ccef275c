// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/worker_process.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/host_name.h"
#include "common/base/log.h"
#include "common/base/shutdown_signal.h"
#include "common/config/paths.h"
#include "common/daemon/endpoints.h"
#include "common/daemon/exit_code.h"
#include "common/daemon/tracing.h"
#include "common/rpc/channel.h"
#include "worker/daemon/evaluator.h"
#include "worker/daemon/lease_loop.h"
#include "worker/daemon/lease_span.h"
#include "worker/daemon/place_labels.h"

namespace mtmc::worker {
namespace {

// For its children, which are killed.
constexpr absl::Duration kBurial = absl::Seconds(2);

}  // namespace

std::optional<absl::Duration> ParseGrace(const std::string& text) {
  absl::Duration grace;
  if (!absl::ParseDuration(text, &grace) || grace < absl::ZeroDuration()) return std::nullopt;
  return grace;
}

absl::Duration EndTimeout(const WorkerFlags& flags) {
  return ParseGrace(flags.grace).value_or(absl::ZeroDuration()) + LeaseLoop::kFarewell + kBurial;
}

// A host's name may have capitals and dots, a resource id may not.
std::string WorkerIdOf(const WorkerFlags& flags, const DeviceChoice& device) {
  if (!flags.name.empty()) return flags.name;
  std::string id = "w-";
  for (const char c : base::HostName()) {
    id.push_back(absl::ascii_isalnum(static_cast<unsigned char>(c))
                     ? absl::ascii_tolower(static_cast<unsigned char>(c))
                     : '-');
  }
  return absl::StrCat(id.substr(0, 48), "-", device.text());
}

std::string ScratchFolderOf(const WorkerFlags& flags, const DeviceChoice& device) {
  // Children have working folders of their own.
  if (!flags.scratch.empty()) return std::filesystem::absolute(flags.scratch).string();
  return (config::CacheDir() / "worker" / device.text()).string();
}

WorkerProcess::WorkerProcess(const WorkerFlags& flags, config::PythonEnvironment python,
                             DeviceChoice device)
    : flags_(flags),
      scratch_(ScratchFolderOf(flags, device)),
      registry_("mtmc-worker"),
      metrics_(registry_),
      coordinator_(
          ConnectToCoordinator(flags.coordinator, daemon::ChannelSecurityOf(flags.daemon))),
      artifacts_(*coordinator_, absl::StrCat(scratch_, "/artifacts")),
      bench_({.python = std::move(python),
              .device = device,
              .scratch = scratch_,
              .worker = absl::StrCat("workers/", WorkerIdOf(flags, device)),
              .fetch = [this](const v1::Digest& digest) { return artifacts_.Fetch(digest); },
              .isolation = FindIsolationLevel(flags.isolation).value_or(IsolationLevel::kConfined),
              .num_builders = flags.num_builders,
              .is_cancelled = [this] { return IsCancelled(); }}) {}

int WorkerProcess::Run(base::ShutdownSignal& shutdown) {
  const auto tracing = daemon::Tracing::Start(flags_.daemon, "mtmc-worker", registry_);
  if (!tracing.ok()) return daemon::FailUsage("unusable --otlp-endpoint", tracing.status());
  // The device takes seconds to open; meanwhile the process is seen alive.
  const auto endpoints = daemon::Endpoints::OpenHttp(
      flags_.daemon, registry_,
      {{.name = "device", .check = [this] { return metrics_.health(); }},
       {.name = "coordinator",
        .check =
            rpc::WatchConnection(flags_.coordinator, daemon::ChannelSecurityOf(flags_.daemon))}});
  if (!endpoints.ok()) return daemon::Fail("cannot serve", endpoints.status());
  const absl::Status opened = bench_.Open();
  if (!opened.ok()) return daemon::Fail("cannot open the device", opened);
  bench_.Describe(worker_);
  worker_.set_host(base::HostName());
  for (const auto& [key, value] : PlaceLabels(std::getenv))
    (*worker_.mutable_labels())[key] = value;
  metrics_.ShowDevice(worker_.device());
  const absl::Status serving = (*endpoints)->Serve({});
  if (!serving.ok()) return daemon::Fail("cannot serve", serving);
  base::Log(base::LogLevel::kInfo, "serving",
            {{"device", worker_.device().product()}, {"coordinator", flags_.coordinator}});
  const absl::Status ended = TakeLeases(shutdown.token());
  loop_ = nullptr;
  return ended.ok() ? 0 : daemon::Fail("the coordinator refuses this worker", ended);
}

// The loop is still asked whether the work in hand is called off while it ends.
absl::Status WorkerProcess::TakeLeases(const std::stop_token& stop) {
  LeaseLoop loop(
      *coordinator_, clock_, worker_,
      [this](const v1::Lease& lease, const auto& progress) { return Work(lease, progress); },
      [this] { return CheckHealth(); },
      {.prepare =
           [this](const v1::Lease& lease, const auto& is_cancelled) {
             const LeaseSpan span("prepare", trace::SpanKind::kInternal, lease, worker_);
             bench_.Prepare(lease.evaluation(), is_cancelled);
           },
       .most = bench_.most_prefetched()},
      {.prepare = [this] { bench_.PrepareRest(); }, .begin = [this] { bench_.Rest(); }});
  loop_ = &loop;
  return loop.Run(stop, ParseGrace(flags_.grace).value_or(absl::InfiniteDuration()));
}

bool WorkerProcess::IsCancelled() const {
  const LeaseLoop* loop = loop_.load();
  return loop != nullptr && loop->is_cancelled();
}

v1::LeaseResult WorkerProcess::Work(const v1::Lease& lease, const Evaluator::Progress& progress) {
  const Evaluator::Progress show = [&](v1::Stage stage) {
    metrics_.ShowStage(stage);
    progress(stage);
  };
  Evaluator& evaluator = bench_.evaluator();
  LeaseSpan span("evaluation", trace::SpanKind::kServer, lease, worker_);
  v1::LeaseResult result = lease.has_inspection() ? evaluator.Inspect(lease.inspection(), show)
                                                  : evaluator.Evaluate(lease.evaluation(), show);
  bench_.calls().Tell(lease.candidate());
  metrics_.ShowStage(v1::STAGE_UNSPECIFIED);
  metrics_.Record(result);
  span.Conclude(result);
  return result;
}

std::string WorkerProcess::CheckHealth() {
  std::string reason = bench_.CheckHealth();
  metrics_.RecordHealth(reason);
  return reason;
}

}  // namespace mtmc::worker
