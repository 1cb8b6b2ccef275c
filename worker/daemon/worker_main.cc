// SPDX-License-Identifier: Apache-2.0
//
// mtmc-worker: owns one device. Takes leases from a coordinator and works on
// them with three children: the reference process, the builder and the runner.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/base/shutdown_signal.h"
#include "common/base/status_macros.h"
#include "common/config/paths.h"
#include "common/config/python_environment.h"
#include "common/config/version.h"
#include "common/metrics/http_endpoint.h"
#include "common/metrics/metrics.h"
#include "mtmc/v1/runner.pb.h"
#include "worker/builder/client.h"
#include "worker/daemon/artifact_cache.h"
#include "worker/daemon/coordinator_client.h"
#include "worker/daemon/doctor.h"
#include "worker/daemon/evaluator.h"
#include "worker/daemon/lease_loop.h"
#include "worker/daemon/work_metrics.h"
#include "worker/reference/client.h"
#include "worker/runner/client.h"

namespace mtmc::worker {
namespace {

using base::Log;
using base::LogLevel;

constexpr int kExitOther = 1;
constexpr int kExitUsage = 2;
constexpr int kExitUnavailable = 69;

// Opening a device measures its bandwidth and rates: two seconds at most, more
// on a machine that is busy with a build.
constexpr absl::Duration kOpenTimeout = absl::Minutes(2);

struct Flags {
  std::string coordinator = "127.0.0.1:50151";
  std::string http = "127.0.0.1:9154";
  std::string ready_file;
  std::string log_level = "info";
  std::string scratch;
  std::string device = "auto";
  std::string python;
  std::string name;
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
  app.add_flag("--doctor", flags.is_doctor, "print what this host offers as JSON, and exit");
}

struct DeviceChoice {
  v1::Dialect backend = v1::DIALECT_OPENCL;
  int index = 0;

  std::string text() const {
    return absl::StrCat(backend == v1::DIALECT_CUDA ? "cuda-" : "opencl-", index);
  }
};

absl::StatusOr<DeviceChoice> ChooseDevice(const std::string& text, bool has_nvidia_device) {
  if (text == "auto") {
    return DeviceChoice{.backend = has_nvidia_device ? v1::DIALECT_CUDA : v1::DIALECT_OPENCL};
  }
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  DeviceChoice choice;
  const bool has_index = parts.size() == 2 && absl::SimpleAtoi(parts[1], &choice.index);
  if (has_index && choice.index >= 0 && parts[0] == "opencl") return choice;
  if (has_index && choice.index >= 0 && parts[0] == "cuda") {
    choice.backend = v1::DIALECT_CUDA;
    return choice;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--device is '", text, "', must be auto, opencl:N or cuda:N"));
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

std::string PluginPath(const DeviceChoice& device) {
  const auto path = config::InstalledFile(
      device.backend == v1::DIALECT_CUDA ? "lib/mtmc_aten_cuda.so" : "lib/mtmc_aten.so");
  return std::filesystem::exists(path) ? path.string() : "";
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

// The isolation of this version, by name: what a child cannot do to the daemon
// and to other children.
std::vector<std::string> IsolationInForce() {
  return {"process", "process-group-deadline", "environment-allow-list", "descriptors"};
}

// Where tensors are shared: in memory if the host allows. Named after the
// scratch folder, so that a worker clears what its killed predecessor left.
class SharedFolder {
 public:
  explicit SharedFolder(const std::string& scratch) : path_(PathOf(scratch)) { Clear(); }

  ~SharedFolder() { Clear(); }

  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  static std::string PathOf(const std::string& scratch) {
    std::error_code ignored;
    if (!std::filesystem::is_directory("/dev/shm", ignored))
      return absl::StrCat(scratch, "/shared");
    const std::string absolute = std::filesystem::absolute(scratch).string();
    return absl::StrCat("/dev/shm/mtmc-", base::Sha256(absolute).sha256_hex.substr(0, 16));
  }

  void Clear() const {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string path_;
};

class WorkerProcess {
 public:
  WorkerProcess(const Flags& flags, config::PythonEnvironment python, DeviceChoice device)
      : flags_(flags),
        python_(std::move(python)),
        device_(device),
        scratch_(flags.scratch.empty() ? (config::CacheDir() / "worker" / device.text()).string()
                                       : flags.scratch),
        shared_(scratch_),
        registry_("mtmc-worker"),
        metrics_(registry_),
        coordinator_(ConnectToCoordinator(flags.coordinator)),
        artifacts_(*coordinator_, absl::StrCat(scratch_, "/artifacts")),
        reference_({.python = python_.python.string(),
                    .package_folder = config::InstalledFile("share/mtmc/python").string(),
                    .scratch = absl::StrCat(shared_.path(), "/reference"),
                    .is_cancelled = [this] { return IsCancelled(); }}),
        builder_({.program = (config::ProgramDir() / "mtmc-builder").string(),
                  .scratch = absl::StrCat(scratch_, "/builder"),
                  .tools = ToolPaths::From(python_),
                  .is_cancelled = [this] { return IsCancelled(); }}),
        runner_({.program = (config::ProgramDir() / "mtmc-runner").string(),
                 .scratch = absl::StrCat(shared_.path(), "/runner"),
                 .tools = ToolPaths::From(python_),
                 .is_cancelled = [this] { return IsCancelled(); }}) {}

  int Run(base::ShutdownSignal& shutdown) {
    reference_.Warm();
    auto opened = OpenDevice();
    if (!opened.ok()) return Fail("cannot open the device", opened.status());
    std::unique_ptr<metrics::HttpEndpoint> http;
    if (!flags_.http.empty()) {
      auto created = metrics::HttpEndpoint::Create(registry_, {.address = flags_.http});
      if (!created.ok()) return Fail("cannot serve HTTP", created.status());
      http = *std::move(created);
    }
    Evaluator evaluator(
        {builder_, runner_, reference_},
        [this](const v1::Digest& digest) { return artifacts_.Fetch(digest); }, clock_,
        {.device = opened->device(),
         .device_index = device_.index,
         .worker = Describe(*opened).name(),
         .session = base::MakeUuid4(),
         .isolation = IsolationInForce(),
         .torch_device =
             device_.backend == v1::DIALECT_CUDA ? absl::StrCat("cuda:", device_.index) : "cpu"});
    LeaseLoop loop(*coordinator_, clock_, Describe(*opened),
                   [&](const v1::Lease& lease, const auto& progress) {
                     v1::LeaseResult result =
                         lease.has_inspection() ? evaluator.Inspect(lease.inspection(), progress)
                                                : evaluator.Evaluate(lease.evaluation(), progress);
                     metrics_.Record(result);
                     return result;
                   });
    loop_ = &loop;
    if (!flags_.ready_file.empty()) {
      const absl::Status written = WriteReadyFile(flags_.ready_file, http.get());
      if (!written.ok()) return Fail("cannot write the ready file", written);
    }
    Log(LogLevel::kInfo, "serving",
        {{"device", opened->device().product()}, {"coordinator", flags_.coordinator}});
    const absl::Status ended = loop.Run(shutdown.token());
    return ended.ok() ? 0 : Fail("the coordinator refuses this worker", ended);
  }

 private:
  bool IsCancelled() const {
    const LeaseLoop* loop = loop_.load();
    return loop != nullptr && loop->is_cancelled();
  }

  absl::StatusOr<v1::RunnerResponse::Opened> OpenDevice() {
    v1::RunnerRequest request;
    auto& open = *request.mutable_open();
    open.set_backend(device_.backend);
    open.set_device_index(device_.index);
    open.set_aten_plugin(PluginPath(device_));
    open.set_measure_rates(true);
    const auto reply = runner_.Call(request, kOpenTimeout);
    if (!reply.is_answered()) return absl::UnavailableError(reply.detail);
    if (reply.response.has_failure()) {
      return absl::UnavailableError(reply.response.failure().message());
    }
    return reply.response.opened();
  }

  v1::Worker Describe(const v1::RunnerResponse::Opened& opened) const {
    v1::Worker worker;
    worker.set_name(absl::StrCat("workers/", WorkerId(flags_, device_)));
    *worker.mutable_device() = opened.device();
    worker.set_version(std::string(config::Version()));
    worker.set_host(HostName());
    for (const std::string& name : IsolationInForce()) worker.add_isolation(name);
    (*worker.mutable_missing_isolation())["namespaces"] = "not used by this version";
    (*worker.mutable_missing_isolation())["seccomp"] = "not used by this version";
    worker.set_counters(opened.counters());
    return worker;
  }

  const Flags& flags_;
  const config::PythonEnvironment python_;
  const DeviceChoice device_;
  const std::string scratch_;
  const SharedFolder shared_;
  base::RealClock clock_;
  metrics::Registry registry_;
  WorkMetrics metrics_;
  const std::unique_ptr<CoordinatorClient> coordinator_;
  ArtifactCache artifacts_;
  // Set while the loop runs; the children are asked from its work thread only.
  std::atomic<LeaseLoop*> loop_ = nullptr;
  ReferenceClient reference_;
  BuilderClient builder_;
  RunnerClient runner_;
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
  // Before Probe, whose child process starts the first thread.
  base::ShutdownSignal shutdown;
  const auto python = config::PythonEnvironment::Probe(flags.python);
  if (flags.is_doctor) {
    const bool has_gpu = python.ok() && python->has_nvidia_device;
    std::cout << ToJson(ExamineHost(
        python, PluginPath({.backend = has_gpu ? v1::DIALECT_CUDA : v1::DIALECT_OPENCL})));
    return 0;
  }
  if (!level.ok()) {
    Log(LogLevel::kError, "unusable --log-level", {{"reason", level.status()}});
    return kExitUsage;
  }
  if (!python.ok()) return Fail("cannot use Python", python.status());
  const auto device = ChooseDevice(flags.device, python->has_nvidia_device);
  if (!device.ok()) {
    Log(LogLevel::kError, "unusable --device", {{"reason", device.status()}});
    return kExitUsage;
  }
  return WorkerProcess(flags, *python, *device).Run(shutdown);
}

}  // namespace
}  // namespace mtmc::worker

int main(int argc, char** argv) { return mtmc::worker::Main(argc, argv); }
