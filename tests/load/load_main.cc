// SPDX-License-Identifier: Apache-2.0
//
// mtmc-load: puts a coordinator under the load of simulated workers, clients and watchers.
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/synchronization/mutex.h"
#include "common/base/log.h"
#include "common/rpc/security.h"
#include "tests/load/load.h"

namespace mtmc::load {
namespace {

constexpr int kOk = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

int Main(int argc, char** argv) {
  LoadOptions options;
  double seconds = absl::ToDoubleSeconds(options.time);
  double setup_seconds = absl::ToDoubleSeconds(options.setup_time);
  double work_ms = 0;
  double think_ms = 0;
  bool is_json = false;
  CLI::App app("Simulates workers, clients and watchers of a coordinator, and counts.",
               "mtmc-load");
  app.add_option("--coordinator", options.coordinator, "HOST:PORT")->required();
  app.add_option("--jobs", options.jobs, "open jobs")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--workers", options.workers, "simulated workers")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--watchers", options.watchers, "WatchJob streams; each job has at least one")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--submitters", options.submitters, "clients that create a job at a time")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--channels", options.channels, "connections")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--trials", options.trials, "trials of a job")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_flag("--random", options.is_random,
               "jobs draw their steps themselves, and ask no policy service");
  app.add_option("--work-ms", work_ms, "mean time of an evaluation in milliseconds")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--seconds", seconds, "how long is counted, once every job is there")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--setup-seconds", setup_seconds, "how long the jobs may take to be there")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of jobs and times of work")->capture_default_str();
  app.add_option("--free-coder", options.free_coder,
                 "HOST:PORT; serve a gateway there whose programs cost nothing");
  app.add_option("--think-ms", think_ms,
                 "mean time in milliseconds that the free coder takes for a step")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--tls-ca", options.security.ca_file, "authorities of the coordinator, PEM");
  app.add_option("--tls-cert", options.security.cert_file, "own certificate chain, PEM");
  app.add_option("--tls-key", options.security.key_file, "its private key, PEM");
  app.add_option("--token-file", options.security.token_file,
                 "file whose first line is a token that may create jobs and work on them");
  app.add_flag("--json", is_json,
               "one line of JSON instead of text, after the line that all jobs are there");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  base::InitLogging({.program = "mtmc-load", .level = base::LogLevel::kWarning});
  // As the daemons: the packaged library looks for cycles of locks at each of them.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  options.time = absl::Seconds(seconds);
  options.setup_time = absl::Seconds(setup_seconds);
  options.mean_work = absl::Milliseconds(work_ms);
  options.mean_think = absl::Milliseconds(think_ms);
  const absl::Status security = rpc::Check(options.security, options.coordinator);
  if (!security.ok()) {
    std::cerr << "mtmc-load: " << security << "\n";
    return kUsage;
  }
  options.on_begin = [] { std::cout << "all jobs are there" << std::endl; };
  const auto report = RunLoad(options);
  if (!report.ok()) {
    std::cerr << "mtmc-load: " << report.status() << "\n";
    return kFailed;
  }
  std::cout << (is_json ? report->ToJson(options) + "\n" : report->ToText(options));
  return report->totals.is_correct() ? kOk : kFailed;
}

}  // namespace
}  // namespace mtmc::load

int main(int argc, char** argv) { return mtmc::load::Main(argc, argv); }
