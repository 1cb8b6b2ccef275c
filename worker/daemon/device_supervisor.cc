// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/device_supervisor.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/shutdown_signal.h"
#include "common/base/status_macros.h"
#include "common/base/subprocess.h"
#include "common/daemon/exit_code.h"
#include "worker/opencl/device_names.h"

namespace mtmc::worker {
namespace {

using base::Log;
using base::LogLevel;

constexpr absl::Duration kPoll = absl::Milliseconds(100);

// The pause before a dead worker is started again doubles from the first to the
// last value; one that lived long enough starts afresh.
constexpr absl::Duration kFirstPause = absl::Seconds(1);
constexpr absl::Duration kLastPause = absl::Minutes(1);
constexpr absl::Duration kLongLife = absl::Minutes(5);

// `/dev/nvidia0` and so on.
int CountNvidiaFiles() {
  int count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename();
    int number = 0;
    if (name.starts_with("nvidia") && absl::SimpleAtoi(name.substr(6), &number)) ++count;
  }
  return count;
}

// What the CUDA driver will show: the listed ones, up to the first bad one.
int CountVisibleCudaDevices() {
  const int count = CountNvidiaFiles();
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return count;
  const std::vector<std::string> listed = absl::StrSplit(visible, ',', absl::SkipEmpty());
  return std::min(count, static_cast<int>(listed.size()));
}

std::string ReadyFileOf(const WorkerFlags& flags, const DeviceChoice& device) {
  return absl::StrCat(flags.daemon.ready_file, ".", device.text());
}

// `address` with its port raised by `offset`; port 0 stays.
std::string ShiftPort(const std::string& address, size_t offset) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port)) {
    return address;
  }
  if (port == 0) return address;
  return absl::StrCat(address.substr(0, colon + 1), static_cast<size_t>(port) + offset);
}

// One worker process, over its lives.
class SupervisedWorker {
 public:
  SupervisedWorker(std::vector<std::string> command, std::string device, std::string ready_file)
      : command_(std::move(command)),
        device_(std::move(device)),
        ready_file_(std::move(ready_file)) {}

  // Starts it, or looks whether it lives and starts it again when its time has
  // come. The exit code if it died, once.
  std::optional<base::ExitReason> Tend() {
    if (!process_) {
      if (absl::Now() >= next_start_) Start();
      return std::nullopt;
    }
    const auto ended = process_->Wait(absl::InfinitePast());
    if (!ended.ok()) return std::nullopt;
    process_.reset();
    if (absl::Now() - started_ >= kLongLife) pause_ = kFirstPause;
    next_start_ = absl::Now() + pause_;
    Log(LogLevel::kWarning, "worker ended",
        {{"device", device_},
         {"reason", ended->ToString()},
         {"restart_in_seconds", absl::ToInt64Seconds(pause_)}});
    pause_ = std::min(pause_ * 2, kLastPause);
    return *ended;
  }

  // Whether it has said that it serves. Without a ready file nobody asks.
  bool IsReady() const {
    return process_ && (ready_file_.empty() || std::filesystem::exists(ready_file_));
  }

  void Signal(int signal) {
    if (process_) process_->Signal(signal);
  }

  void AwaitEnd(absl::Time deadline) {
    if (process_) (void)process_->Wait(deadline);
    process_.reset();
  }

  const std::string& ready_file() const { return ready_file_; }

 private:
  void Start() {
    std::error_code ignored;
    if (!ready_file_.empty()) std::filesystem::remove(ready_file_, ignored);
    started_ = absl::Now();
    auto started = base::Subprocess::Start({.argv = command_});
    if (started.ok()) {
      process_ = *std::move(started);
      return;
    }
    Log(LogLevel::kError, "worker not started", {{"device", device_}, {"error", started.status()}});
    next_start_ = absl::Now() + pause_;
    pause_ = std::min(pause_ * 2, kLastPause);
  }

  const std::vector<std::string> command_;
  const std::string device_;
  const std::string ready_file_;
  // Absent while it is dead.
  std::optional<base::Subprocess> process_;
  absl::Time started_ = absl::InfinitePast();
  absl::Time next_start_ = absl::InfinitePast();
  absl::Duration pause_ = kFirstPause;
};

using Workers = std::vector<std::unique_ptr<SupervisedWorker>>;

// The ready file of the first worker stands for all, with our own process.
absl::Status WriteReadyFile(const std::string& path, const SupervisedWorker& first) {
  if (path.empty()) return absl::OkStatus();
  MTMC_ASSIGN_OR_RETURN(std::string text, base::ReadFile(first.ready_file()));
  const size_t pid = text.find("\"pid\":");
  if (pid == std::string::npos) return absl::DataLossError("a worker's ready file has no pid");
  return base::WriteFileAtomically(
      path, absl::StrCat(text.substr(0, pid), "\"pid\":", ::getpid(), "}\n"));
}

void StopAll(Workers& workers, absl::Duration timeout) {
  for (const auto& worker : workers) worker->Signal(SIGTERM);
  const absl::Time deadline = absl::Now() + timeout;
  for (const auto& worker : workers) worker->AwaitEnd(deadline);
}

}  // namespace

absl::StatusOr<std::vector<DeviceChoice>> ListDevices(bool has_nvidia_device) {
  const v1::Dialect backend = has_nvidia_device ? v1::DIALECT_CUDA : v1::DIALECT_OPENCL;
  int count = CountVisibleCudaDevices();
  if (!has_nvidia_device) {
    MTMC_ASSIGN_OR_RETURN(const auto names, ListOpenClDeviceNames());
    count = static_cast<int>(names.size());
  }
  if (count == 0) return absl::NotFoundError("there is no device that this process may use");
  std::vector<DeviceChoice> devices;
  for (int i = 0; i < count; ++i) devices.push_back({.backend = backend, .index = i});
  return devices;
}

std::vector<std::string> WorkerCommand(const std::string& program, const WorkerFlags& flags,
                                       const DeviceChoice& device, size_t position) {
  WorkerFlags unnamed = flags;
  unnamed.name.clear();
  const std::string name = flags.name.empty() ? WorkerIdOf(unnamed, device)
                                              : absl::StrCat(flags.name, "-", device.text());
  const std::string scratch = flags.scratch.empty()
                                  ? ScratchFolderOf(flags, device)
                                  : absl::StrCat(flags.scratch, "/", device.text());
  std::vector<std::string> command = {
      program,
      "--device",
      absl::StrCat(device.is_cuda() ? "cuda:" : "opencl:", device.index),
      "--name",
      name,
      "--scratch",
      scratch,
      "--coordinator",
      flags.coordinator,
      "--http",
      ShiftPort(flags.daemon.http, position),
      "--log-level",
      flags.daemon.log_level,
      "--log-format",
      flags.daemon.log_format,
      "--isolation",
      flags.isolation,
      "--builders",
      std::to_string(flags.num_builders),
      "--grace",
      flags.grace};
  const std::pair<const char*, std::string> optional[] = {
      {"--tls-ca", flags.daemon.tls_ca},
      {"--tls-cert", flags.daemon.tls_cert},
      {"--tls-key", flags.daemon.tls_key},
      {"--token-file", flags.daemon.token_file},
      {"--otlp-endpoint", flags.daemon.otlp_endpoint},
  };
  for (const auto& [flag, value] : optional) {
    if (!value.empty()) command.insert(command.end(), {flag, value});
  }
  if (flags.daemon.is_insecure) command.emplace_back("--insecure");
  if (!flags.python.empty()) command.insert(command.end(), {"--python", flags.python});
  if (!flags.daemon.ready_file.empty()) {
    command.insert(command.end(), {"--ready-file", ReadyFileOf(flags, device)});
  }
  return command;
}

DeviceSupervisor::DeviceSupervisor(const WorkerFlags& flags, Options options)
    : flags_(flags), options_(std::move(options)) {}

int DeviceSupervisor::Run(base::ShutdownSignal& shutdown) {
  Workers workers;
  for (size_t i = 0; i < options_.devices.size(); ++i) {
    const DeviceChoice& device = options_.devices[i];
    workers.push_back(std::make_unique<SupervisedWorker>(
        WorkerCommand(options_.program, flags_, device, i), device.text(),
        flags_.daemon.ready_file.empty() ? "" : ReadyFileOf(flags_, device)));
  }
  bool is_ready = false;
  const absl::Time start_deadline = absl::Now() + options_.start_timeout;
  do {
    for (const auto& worker : workers) {
      const auto ended = worker->Tend();
      // A worker that never served will not do so the next time either.
      if (ended && !is_ready) {
        StopAll(workers, options_.stop_timeout);
        return ended->exit_code.value_or(daemon::kExitOther);
      }
    }
    if (is_ready) continue;
    is_ready = std::all_of(workers.begin(), workers.end(),
                           [](const auto& worker) { return worker->IsReady(); });
    if (is_ready) {
      const absl::Status written = WriteReadyFile(flags_.daemon.ready_file, *workers.front());
      if (!written.ok()) return daemon::Fail("cannot write the ready file", written);
      Log(LogLevel::kInfo, "serving", {{"devices", static_cast<int64_t>(workers.size())}});
    } else if (absl::Now() > start_deadline) {
      return daemon::Fail("cannot serve",
                          absl::UnavailableError("a worker did not start; see its messages"));
    }
  } while (!shutdown.WaitUntil(absl::Now() + kPoll));
  StopAll(workers, options_.stop_timeout);
  return daemon::kExitOk;
}

}  // namespace mtmc::worker
