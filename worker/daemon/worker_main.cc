// SPDX-License-Identifier: Apache-2.0
//
// mtmc-worker: owns one device. Takes leases from a coordinator and works on
// them with three children: the reference process, the builder and the runner.
// With --all-devices it is the parent of one such worker per device.
#include <CLI/CLI.hpp>
#include <iostream>

#include "common/base/shutdown_signal.h"
#include "common/config/paths.h"
#include "common/config/python_environment.h"
#include "common/daemon/clock_watch.h"
#include "common/daemon/exit_code.h"
#include "common/rpc/security.h"
#include "worker/daemon/device_choice.h"
#include "worker/daemon/device_supervisor.h"
#include "worker/daemon/doctor.h"
#include "worker/daemon/worker_process.h"
#include "worker/sandbox/seal.h"

namespace mtmc::worker {
namespace {

// What CLI11 wants of a check: what is wrong, or nothing.
std::string IsGrace(const std::string& text) {
  return ParseGrace(text) ? "" : "must be a duration such as 4m, or 0";
}

void Declare(CLI::App& app, WorkerFlags& flags) {
  daemon::Declare(app, flags.daemon);
  daemon::DeclareChannels(app, flags.daemon);
  app.add_option("--coordinator", flags.coordinator, "coordinator to take work from, HOST:PORT")
      ->envname("MTMC_ENDPOINT")
      ->capture_default_str();
  app.add_option("--scratch", flags.scratch,
                 "folder for shared tensors and caches; default in the cache folder");
  app.add_option("--device", flags.device, "auto, opencl:N or cuda:N")->capture_default_str();
  app.add_flag("--all-devices", flags.has_all_devices,
               "one worker for each CUDA device, or for each OpenCL device if there is none")
      ->excludes("--device");
  app.add_option("--python", flags.python, "interpreter that has PyTorch")->envname("MTMC_PYTHON");
  app.add_option("--name", flags.name,
                 "last part of the worker's name; default from host and device");
  app.add_option("--isolation", flags.isolation,
                 "most that keeps candidates from the host: process, restricted, confined or best")
      ->check(CLI::IsMember({"process", "restricted", "confined", "best"}))
      ->capture_default_str();
  app.add_option("--builders", flags.num_builders,
                 "builder processes; 0: half as many as there are cores, four at most");
  app.add_option("--grace", flags.grace,
                 "how long a worker that is told to end goes on with its lease before it gives it "
                 "back, such as 4m; it has ended half a minute later")
      ->check(IsGrace)
      ->take_last()
      ->capture_default_str();
  app.add_flag("--doctor", flags.is_doctor, "print what this host offers as JSON, and exit");
}

int PrintHost(const absl::StatusOr<config::PythonEnvironment>& python) {
  const bool has_gpu = python.ok() && python->has_nvidia_device;
  std::cout << ToJson(ExamineHost(
      python, AtenPluginPath({.backend = has_gpu ? v1::DIALECT_CUDA : v1::DIALECT_OPENCL})));
  return daemon::kExitOk;
}

int RunAllDevices(const WorkerFlags& flags, bool has_nvidia_device,
                  base::ShutdownSignal& shutdown) {
  auto devices = ListDevices(has_nvidia_device);
  if (!devices.ok()) return daemon::Fail("cannot use --all-devices", devices.status());
  return DeviceSupervisor(flags, {.program = (config::ProgramDir() / "mtmc-worker").string(),
                                  .devices = *std::move(devices),
                                  .stop_timeout = EndTimeout(flags)})
      .Run(shutdown);
}

int Main(int argc, char** argv) {
  WorkerFlags flags;
  CLI::App app("Evaluates candidates on one device.", "mtmc-worker");
  Declare(app, flags);
  if (const auto code = daemon::ParseAndInitLogging(app, argc, argv, flags.daemon)) return *code;
  if (!flags.is_doctor) {
    const absl::Status security =
        rpc::Check(daemon::ChannelSecurityOf(flags.daemon), flags.coordinator);
    if (!security.ok()) return daemon::FailUsage("cannot secure the channel", security);
  }
  HardenDaemon();
  // Before Probe, whose child process starts the first thread.
  base::ShutdownSignal shutdown;
  const daemon::ClockWatch clock_watch(shutdown.token());
  const auto python = config::PythonEnvironment::Probe(flags.python);
  if (flags.is_doctor) return PrintHost(python);
  if (!python.ok()) return daemon::Fail("cannot use Python", python.status());
  if (flags.has_all_devices) return RunAllDevices(flags, python->has_nvidia_device, shutdown);
  const auto device = ParseDeviceChoice(flags.device, python->has_nvidia_device);
  if (!device.ok()) return daemon::FailUsage("unusable --device", device.status());
  return WorkerProcess(flags, *python, *device).Run(shutdown);
}

}  // namespace
}  // namespace mtmc::worker

int main(int argc, char** argv) { return mtmc::worker::Main(argc, argv); }
