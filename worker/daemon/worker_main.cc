// SPDX-License-Identifier: Apache-2.0
//
// mtmc-worker: owns one device. Takes leases from a coordinator and works on
// them with three children: the reference process, the builder and the runner.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/shutdown_signal.h"
#include "common/config/paths.h"
#include "common/config/python_environment.h"
#include "common/config/version.h"
#include "common/metrics/http_endpoint.h"
#include "common/metrics/metrics.h"
#include "worker/daemon/artifact_cache.h"
#include "worker/daemon/coordinator_client.h"
#include "worker/daemon/device_choice.h"
#include "worker/daemon/doctor.h"
#include "worker/daemon/evaluator.h"
#include "worker/daemon/lease_loop.h"
#include "worker/daemon/work_metrics.h"
#include "worker/daemon/workbench.h"
#include "worker/sandbox/seal.h"

namespace mtmc::worker {
namespace {

using base::Log;
using base::LogLevel;

constexpr int kExitOther = 1;
constexpr int kExitUsage = 2;
constexpr int kExitUnavailable = 69;

struct Flags {
  std::string coordinator = "127.0.0.1:50151";
  std::string http = "127.0.0.1:9154";
  std::string ready_file;
  std::string log_level = "info";
  std::string scratch;
  std::string device = "auto";
  std::string python;
  std::string name;
  std::string isolation = "best";
  int num_builders = 0;
  bool is_doctor = false;
};

void Declare(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version", "mtmc-worker " + std::string(config::Version()));
  app.add_option("--coordinator", flags.coordinator, "coordinator to take work from, HOST:PORT")
      ->envname("MTMC_ENDPOINT")
      ->capture_default_str();
  app.add_option("--http", flags.http,
                 "address of /metrics, /healthz and /readyz; empty switches them off")
      ->capture_default_str();
  app.add_option("--ready-file", flags.ready_file, "JSON file written once the worker serves");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->envname("MTMC_LOG")
      ->capture_default_str();
  app.add_option("--scratch", flags.scratch,
                 "folder for shared tensors and caches; default in the cache folder");
  app.add_option("--device", flags.device, "auto, opencl:N or cuda:N")->capture_default_str();
  app.add_option("--python", flags.python, "interpreter that has PyTorch")->envname("MTMC_PYTHON");
  app.add_option("--name", flags.name,
                 "last part of the worker's name; default from host and device");
  app.add_option("--isolation", flags.isolation,
                 "most that keeps candidates from the host: process, restricted, confined or best")
      ->check(CLI::IsMember({"process", "restricted", "confined", "best"}))
      ->capture_default_str();
  app.add_option("--builders", flags.num_builders,
                 "builder processes; 0: half as many as there are cores, four at most");
  app.add_flag("--doctor", flags.is_doctor, "print what this host offers as JSON, and exit");
}

std::string HostName() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

// A resource id from the host's name, which may have capitals and dots.
std::string WorkerId(const Flags& flags, const DeviceChoice& device) {
  if (!flags.name.empty()) return flags.name;
  std::string id = "w-";
  for (const char c : HostName()) {
    id.push_back(absl::ascii_isalnum(static_cast<unsigned char>(c))
                     ? absl::ascii_tolower(static_cast<unsigned char>(c))
                     : '-');
  }
  return absl::StrCat(id.substr(0, 48), "-", device.text());
}

int Fail(std::string_view what, const absl::Status& status) {
  Log(LogLevel::kError, what, {{"reason", status}});
  return absl::IsUnavailable(status) || absl::IsNotFound(status) ? kExitUnavailable : kExitOther;
}

absl::Status WriteReadyFile(const std::string& path, const metrics::HttpEndpoint* http) {
  const std::string address = http == nullptr ? "" : absl::StrCat("127.0.0.1:", http->port());
  return base::WriteFileAtomically(
      path, absl::StrCat("{\"grpc\":\"\",\"http\":\"", address, "\",\"pid\":", ::getpid(), "}\n"));
}

// The workbench, and the loop that takes leases for it.
class WorkerProcess {
 public:
  WorkerProcess(const Flags& flags, config::PythonEnvironment python, DeviceChoice device)
      : flags_(flags),
        scratch_(flags.scratch.empty() ? (config::CacheDir() / "worker" / device.text()).string()
                                       : flags.scratch),
        registry_("mtmc-worker"),
        metrics_(registry_),
        coordinator_(ConnectToCoordinator(flags.coordinator)),
        artifacts_(*coordinator_, absl::StrCat(scratch_, "/artifacts")),
        bench_({.python = std::move(python),
                .device = device,
                .scratch = scratch_,
                .worker = absl::StrCat("workers/", WorkerId(flags, device)),
                .fetch = [this](const v1::Digest& digest) { return artifacts_.Fetch(digest); },
                .isolation = FindIsolationLevel(flags.isolation).value_or(IsolationLevel::kConfined),
                .num_builders = flags.num_builders,
                .is_cancelled = [this] { return IsCancelled(); }}) {}

  int Run(base::ShutdownSignal& shutdown) {
    const absl::Status opened = bench_.Open();
    if (!opened.ok()) return Fail("cannot open the device", opened);
    std::unique_ptr<metrics::HttpEndpoint> http;
    if (!flags_.http.empty()) {
      auto created = metrics::HttpEndpoint::Create(registry_, {.address = flags_.http});
      if (!created.ok()) return Fail("cannot serve HTTP", created.status());
      http = *std::move(created);
    }
    v1::Worker worker;
    bench_.Describe(worker);
    worker.set_host(HostName());
    LeaseLoop loop(*coordinator_, clock_, worker,
                   [&](const v1::Lease& lease, const auto& progress) {
                     Evaluator& evaluator = bench_.evaluator();
                     v1::LeaseResult result =
                         lease.has_inspection() ? evaluator.Inspect(lease.inspection(), progress)
                                                : evaluator.Evaluate(lease.evaluation(), progress);
                     metrics_.Record(result);
                     return result;
                   },
                   [&] {
                     std::string reason = bench_.CheckHealth();
                     metrics_.RecordHealth(reason);
                     return reason;
                   },
                   [&](const v1::Lease& lease, const auto& is_cancelled) {
                     bench_.Prepare(lease.evaluation(), is_cancelled);
                   });
    loop_ = &loop;
    if (!flags_.ready_file.empty()) {
      const absl::Status written = WriteReadyFile(flags_.ready_file, http.get());
      if (!written.ok()) return Fail("cannot write the ready file", written);
    }
    Log(LogLevel::kInfo, "serving",
        {{"device", worker.device().product()}, {"coordinator", flags_.coordinator}});
    const absl::Status ended = loop.Run(shutdown.token());
    loop_ = nullptr;
    return ended.ok() ? 0 : Fail("the coordinator refuses this worker", ended);
  }

 private:
  bool IsCancelled() const {
    const LeaseLoop* loop = loop_.load();
    return loop != nullptr && loop->is_cancelled();
  }

  const Flags& flags_;
  const std::string scratch_;
  base::RealClock clock_;
  metrics::Registry registry_;
  WorkMetrics metrics_;
  const std::unique_ptr<CoordinatorClient> coordinator_;
  ArtifactCache artifacts_;
  // Set while the loop runs; the children are asked from its work thread only.
  std::atomic<LeaseLoop*> loop_ = nullptr;
  Workbench bench_;
};

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Evaluates candidates on one device.", "mtmc-worker");
  Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  const absl::StatusOr<LogLevel> level = base::ParseLogLevel(flags.log_level);
  base::InitLogging({.program = "mtmc-worker", .level = level.value_or(LogLevel::kInfo)});
  HardenDaemon();
  // Before Probe, whose child process starts the first thread.
  base::ShutdownSignal shutdown;
  const auto python = config::PythonEnvironment::Probe(flags.python);
  if (flags.is_doctor) {
    const bool has_gpu = python.ok() && python->has_nvidia_device;
    std::cout << ToJson(ExamineHost(
        python, AtenPluginPath({.backend = has_gpu ? v1::DIALECT_CUDA : v1::DIALECT_OPENCL})));
    return 0;
  }
  if (!level.ok()) {
    Log(LogLevel::kError, "unusable --log-level", {{"reason", level.status()}});
    return kExitUsage;
  }
  if (!python.ok()) return Fail("cannot use Python", python.status());
  const auto device = ParseDeviceChoice(flags.device, python->has_nvidia_device);
  if (!device.ok()) {
    Log(LogLevel::kError, "unusable --device", {{"reason", device.status()}});
    return kExitUsage;
  }
  return WorkerProcess(flags, *python, *device).Run(shutdown);
}

}  // namespace
}  // namespace mtmc::worker

int main(int argc, char** argv) { return mtmc::worker::Main(argc, argv); }
