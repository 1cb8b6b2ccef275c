// SPDX-License-Identifier: Apache-2.0
//
// mtmc-bench: measures the measurement.
//
//   mtmc-bench compare --device cuda:0 --runs 100 --json compare.jsonl
//
// runs sessions of a program against itself and against copies that are slower by
// a known ratio, and counts what the comparison says.
//
//   mtmc-bench cold --device cuda:0
//
// times one short kernel after several preparations before the flush, which should
// not show.
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/temp_dir.h"
#include "common/config/paths.h"
#include "common/config/python_environment.h"
#include "common/config/version.h"
#include "common/daemon/exit_code.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "worker/bench/cold_bench.h"
#include "worker/bench/compare_bench.h"
#include "worker/bench/synthetic_program.h"
#include "worker/builder/client.h"
#include "worker/daemon/session.h"
#include "worker/measure/statistics.h"
#include "worker/runner/backend.h"

namespace mtmc::worker {
namespace {

using Outcome = ComparisonResult::Outcome;

// How often the device is opened in one process.
constexpr int kColdDevices = 4;
constexpr absl::Duration kBuildTimeout = absl::Minutes(2);

struct Flags {
  std::string device = "auto";
  std::string python;
  std::string json;
  CompareBench::Options bench;
  int rounds = 400;
  int loops = 100;
};

void Declare(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version", "mtmc-bench " + std::string(config::Version()));
  app.require_subcommand(1);
  app.add_option("--device", flags.device, "auto, opencl:N or cuda:N")->capture_default_str();
  app.add_option("--python", flags.python, "interpreter that has PyTorch")->envname("MTMC_PYTHON");
  // Options of all subcommands may stand behind their names.
  app.fallthrough();
  CLI::App& cold =
      *app.add_subcommand("cold", "whether a cold time depends on what came before, or on places");
  cold.add_option("--rounds", flags.rounds, "samples under every condition")->capture_default_str();
  cold.add_option("--loops", flags.loops, "length of the kernel")->capture_default_str();
  CLI::App& compare =
      *app.add_subcommand("compare", "how often the comparison of two programs says what is true");
  compare.add_option("--runs", flags.bench.runs, "sessions of every case")->capture_default_str();
  compare.add_option("--seconds", flags.bench.lengths, "device times of the baseline")
      ->delimiter(',')
      ->capture_default_str();
  compare.add_option("--slowdowns", flags.bench.slowdowns, "candidate times over baseline times")
      ->delimiter(',')
      ->capture_default_str();
  compare
      .add_option("--sessions-per-process", flags.bench.sessions_per_process,
                  "sessions before both processes are replaced")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  compare.add_option("--seed", flags.bench.seed, "of the order of the sessions")
      ->capture_default_str();
  compare.add_option("--json", flags.json, "file for one JSON object per case");
}

absl::StatusOr<std::string> Compile(const std::string& text, const v1::DeviceFacts& device,
                                    int device_index, BuilderClient& builder) {
  pipe::v1::BuilderRequest request;
  request.mutable_build()->set_program(text);
  *request.mutable_build()->mutable_device() = device;
  request.mutable_build()->set_device_index(device_index);
  const auto reply = builder.Call(request, kBuildTimeout);
  if (!reply.is_answered()) return absl::UnavailableError(reply.detail);
  if (reply.response.built_size() == 0 || reply.response.built(0).has_failure()) {
    return absl::InternalError(reply.response.built(0).failure().diagnostics());
  }
  return reply.response.built(0).binary();
}

nlohmann::json ToJson(const CompareCase& one, const v1::DeviceFacts& device) {
  nlohmann::json speedups = nlohmann::json::array();
  nlohmann::json swapped = nlohmann::json::array();
  nlohmann::json lows = nlohmann::json::array();
  nlohmann::json highs = nlohmann::json::array();
  nlohmann::json offsets = nlohmann::json::array();
  std::vector<double> session_seconds;
  std::vector<double> noise;
  std::vector<double> medians;
  double samples = 0;
  int by_noise = 0;
  for (const SessionRow& row : one.rows) {
    speedups.push_back(row.result.speedup);
    swapped.push_back(row.is_swapped);
    lows.push_back(row.result.interval.low);
    highs.push_back(row.result.interval.high);
    offsets.push_back(row.result.offset_seconds);
    session_seconds.push_back(row.session_seconds);
    noise.push_back(row.noise_ratio);
    medians.push_back(row.candidate_seconds);
    samples += row.samples;
    by_noise += row.stopped_by == "noise" ? 1 : 0;
  }
  const auto runs = static_cast<double>(one.rows.size());
  return {{"device", device.product()},
          {"driver", device.driver_version()},
          {"baseline_seconds", one.seconds},
          {"slowdown", one.slowdown},
          {"real_slowdown", one.real_slowdown},
          {"baseline_loops", one.baseline_loops},
          {"candidate_loops", one.candidate_loops},
          {"runs", one.rows.size()},
          {"same", one.Count(Outcome::kSame)},
          {"faster", one.Count(Outcome::kFaster)},
          {"slower", one.Count(Outcome::kSlower)},
          {"ambiguous", one.Count(Outcome::kAmbiguous)},
          {"median_candidate_seconds", Median(medians)},
          {"median_noise_ratio", Median(noise)},
          {"mean_samples", samples / runs},
          {"stopped_by_noise", by_noise},
          {"median_session_seconds", Median(session_seconds)},
          {"speedups", speedups},
          {"swapped", swapped},
          {"speedup_lows", lows},
          {"speedup_highs", highs},
          {"offset_seconds", offsets}};
}

void Print(const std::vector<CompareCase>& cases) {
  std::cout << absl::StrFormat("%10s %9s %9s %6s %6s %7s %10s %8s %9s\n", "seconds", "slowdown",
                               "real", "SAME", "FASTER", "SLOWER", "AMBIGUOUS", "noise %",
                               "session s");
  for (const CompareCase& one : cases) {
    std::vector<double> noise;
    std::vector<double> session;
    for (const SessionRow& row : one.rows) {
      noise.push_back(row.noise_ratio);
      session.push_back(row.session_seconds);
    }
    std::cout << absl::StrFormat("%10.3g %9.3f %9.4f %6d %6d %7d %10d %8.2f %9.3f\n", one.seconds,
                                 one.slowdown, one.real_slowdown, one.Count(Outcome::kSame),
                                 one.Count(Outcome::kFaster), one.Count(Outcome::kSlower),
                                 one.Count(Outcome::kAmbiguous), 100 * Median(noise),
                                 Median(session));
  }
}

// What every command works with.
struct Workshop {
  DeviceChoice device;
  ToolPaths tools;
  base::TempDir folder;
  std::unique_ptr<BuilderClient> builder;

  std::string Path(const std::string& name) const { return (folder.path() / name).string(); }
};

absl::StatusOr<Workshop> OpenWorkshop(const Flags& flags) {
  MTMC_ASSIGN_OR_RETURN(const auto python, config::PythonEnvironment::Probe(flags.python));
  MTMC_ASSIGN_OR_RETURN(const DeviceChoice device,
                        ParseDeviceChoice(flags.device, python.has_nvidia_device));
  MTMC_ASSIGN_OR_RETURN(base::TempDir folder, base::TempDir::Create());
  Workshop workshop{
      .device = device, .tools = ToolPaths::From(python), .folder = std::move(folder)};
  workshop.builder = std::make_unique<BuilderClient>(
      BuilderClient::Options{.program = (config::ProgramDir() / "mtmc-builder").string(),
                             .scratch = workshop.Path("builder"),
                             .tools = workshop.tools});
  return workshop;
}

absl::Status Compare(Flags& flags) {
  MTMC_ASSIGN_OR_RETURN(const Workshop workshop, OpenWorkshop(flags));
  const DeviceChoice& device = workshop.device;
  auto runner = [&](const std::string& name) {
    return SyntheticRunner::Options{.program = (config::ProgramDir() / "mtmc-runner").string(),
                                    .scratch = workshop.Path(name),
                                    .tools = workshop.tools};
  };
  SyntheticRunner first(runner("first"));
  SyntheticRunner second(runner("second"));
  MTMC_ASSIGN_OR_RETURN(const v1::DeviceFacts facts, first.Open(device));
  MTMC_RETURN_IF_ERROR(second.Open(device).status());
  flags.bench.turns = TurnsOn(facts);
  flags.bench.text = SyntheticProgram(device.backend);
  MTMC_ASSIGN_OR_RETURN(flags.bench.binary,
                        Compile(flags.bench.text, facts, device.index, *workshop.builder));
  flags.bench.left_out = [](double seconds, std::string_view reason) {
    std::cerr << absl::StrFormat("%g s is left out: %s\n", seconds, reason);
  };
  flags.bench.progress = [](int done, int total) {
    if (done % 50 == 0 || done == total) {
      std::cerr << absl::StrFormat("%d of %d sessions\n", done, total);
    }
  };
  CompareBench bench(first, second, flags.bench);
  MTMC_ASSIGN_OR_RETURN(const std::vector<CompareCase> cases, bench.Run());
  Print(cases);
  if (flags.json.empty()) return absl::OkStatus();
  std::ofstream file(flags.json);
  for (const CompareCase& one : cases) file << ToJson(one, facts).dump() << "\n";
  if (!file.flush()) return absl::UnavailableError(absl::StrCat("cannot write ", flags.json));
  return absl::OkStatus();
}

absl::Status ToStatus(const Failure& failure) { return absl::InternalError(failure.message); }

absl::Status Cold(const Flags& flags) {
  MTMC_ASSIGN_OR_RETURN(const Workshop workshop, OpenWorkshop(flags));
  const DeviceChoice& device = workshop.device;
  const bool is_cuda = device.backend == v1::DIALECT_CUDA;
  std::vector<Backend> backends;
  std::vector<Device*> devices;
  for (int i = 0; i < kColdDevices; ++i) {
    MTMC_ASSIGN_OR_RETURN(
        Backend backend,
        OpenBackend({.dialect = is_cuda ? kernel::Dialect::kCuda : kernel::Dialect::kOpenCl,
                     .device_index = device.index,
                     .tools = workshop.tools}));
    devices.push_back(backend.device.get());
    backends.push_back(std::move(backend));
  }
  MTMC_ASSIGN_OR_RETURN(const std::string binary,
                        Compile(SyntheticProgram(device.backend), ToProto(backends.front().facts),
                                device.index, *workshop.builder));
  auto bench = ColdBench::Create(devices, binary, flags.loops);
  if (!bench.ok()) return ToStatus(bench.failure());
  const auto rows = (*bench)->Run(flags.rounds);
  if (!rows.ok()) return ToStatus(rows.failure());
  std::cout << absl::StrFormat("%9s %8s %8s  %s\n", "mid us", "ratio", "noise %",
                               "before, or where");
  for (const ColdRow& row : *rows) {
    std::cout << absl::StrFormat("%9.3f %8.4f %8.2f  %s\n", MidMean(row.seconds) * 1e6,
                                 MidMean(row.seconds) / MidMean(rows->front().seconds),
                                 100 * NoiseRatio(row.seconds), row.name);
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app("measures the measurement");
  Flags flags;
  Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? daemon::kExitOk : daemon::kExitUsage;
  }
  base::InitLogging({.program = "mtmc-bench", .level = base::LogLevel::kWarning});
  const absl::Status status = app.got_subcommand("cold") ? Cold(flags) : Compare(flags);
  return status.ok() ? daemon::kExitOk : daemon::Fail("the bench ended early", status);
}

}  // namespace
}  // namespace mtmc::worker

// NOLINTNEXTLINE(bugprone-exception-escape): only where the JSON library is out of memory.
int main(int argc, char** argv) { return mtmc::worker::Main(argc, argv); }
