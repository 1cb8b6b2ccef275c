// SPDX-License-Identifier: Apache-2.0
//
// mtmc-policyd: the macro step as a service. The rules are always there; a
// language model is loaded when --model names a Hugging Face folder.
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/base/shutdown_signal.h"
#include "common/config/paths.h"
#include "common/config/python_environment.h"
#include "common/daemon/clock_watch.h"
#include "common/daemon/core_dumps.h"
#include "common/daemon/endpoints.h"
#include "common/daemon/exit_code.h"
#include "common/daemon/flags.h"
#include "common/daemon/tracing.h"
#include "common/metrics/metrics.h"
#include "grpcpp/impl/service_type.h"
#include "policy/model/model_scorer.h"
#include "policy/rules/rules_policy.h"
#include "policy/service/lm_policy.h"
#include "policy/service/policy_service.h"

namespace mtmc::policy {
namespace {

using base::Log;
using base::LogLevel;

// Longest time that calls in flight get when the daemon is told to stop: a
// batch of a small model on a CPU.
constexpr absl::Duration kShutdownGrace = absl::Seconds(5);

struct Flags {
  daemon::Flags daemon{.listen = "127.0.0.1:50152", .http = "127.0.0.1:9152"};
  std::string model;
  std::string default_policy = "rules";
  std::string device = "cpu";
  std::string weights = "float32";
  std::string python;
  size_t max_batch = Batcher::Options().max_batch;
  int max_delay_ms = static_cast<int>(absl::ToInt64Milliseconds(Batcher::Options().max_delay));
  size_t max_queued = Batcher::Options().max_queued;
};

void Declare(CLI::App& app, Flags& flags) {
  daemon::Declare(app, flags.daemon);
  app.add_option("--model", flags.model,
                 "Hugging Face folder of a Llama or Qwen2 model; loads the policy lm");
  app.add_option("--default-policy", flags.default_policy, "policy of requests that name none")
      ->check(CLI::IsMember({"rules", "lm"}))
      ->capture_default_str();
  app.add_option("--device", flags.device, "where the model runs, cpu or cuda:N")
      ->capture_default_str();
  app.add_option("--weights", flags.weights, "type that weights are kept in")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->capture_default_str();
  app.add_option("--python", flags.python, "Python whose PyTorch brings libtorch")
      ->envname("MTMC_PYTHON");
  app.add_option("--max-batch", flags.max_batch, "most requests of one forward pass")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--max-delay-ms", flags.max_delay_ms,
                 "longest wait of a request for others, in milliseconds")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  app.add_option("--max-queued", flags.max_queued,
                 "requests that may wait before others are refused")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
}

// Where the model's part of the program comes from. libtorch is asked for only
// here, so that the rules start without Python.
absl::StatusOr<std::unique_ptr<Policy>> LoadModel(const Flags& flags) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(flags.model, ignored)) {
    return absl::NotFoundError(absl::StrCat("there is no folder '", flags.model, "'"));
  }
  const absl::StatusOr<config::PythonEnvironment> python =
      config::PythonEnvironment::Probe(flags.python);
  if (!python.ok()) return python.status();
  absl::StatusOr<std::unique_ptr<ActionScorer>> scorer =
      LoadModelScorer(flags.model, {.plugin_path = config::InstalledFile("lib/mtmc_lm.so"),
                                    .torch_folder = python->torch_lib_dir,
                                    .device = flags.device,
                                    .keeps_bfloat16 = flags.weights == "bfloat16"});
  if (!scorer.ok()) return scorer.status();
  return std::make_unique<LmPolicy>(
      *std::move(scorer), Batcher::Options{.max_batch = flags.max_batch,
                                           .max_delay = absl::Milliseconds(flags.max_delay_ms),
                                           .max_queued = flags.max_queued});
}

int Serve(const std::vector<Policy*>& policies, metrics::Registry& registry,
          daemon::Endpoints& endpoints, base::ShutdownSignal& shutdown) {
  const std::unique_ptr<grpc::Service> service = MakePolicyService(policies, registry);
  const absl::Status serving = endpoints.Serve({{service.get(), "mtmc.v1.PolicyService"}});
  if (!serving.ok()) return daemon::Fail("cannot serve", serving);
  Log(LogLevel::kInfo, "serving",
      {{"grpc", endpoints.grpc_address()}, {"default_policy", policies.front()->name()}});
  shutdown.Wait();
  endpoints.Shutdown(absl::Now() + kShutdownGrace);
  return 0;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("The macro step of mtmc: which optimization to try next.", "mtmc-policyd");
  Declare(app, flags);
  if (const auto code = daemon::ParseAndInitLogging(app, argc, argv, flags.daemon)) return *code;
  daemon::ForbidCoreDumps();
  if (flags.default_policy == "lm" && flags.model.empty()) {
    Log(LogLevel::kError, "--default-policy lm needs --model FOLDER");
    return daemon::kExitUsage;
  }

  base::ShutdownSignal shutdown;
  const daemon::ClockWatch clock_watch(shutdown.token());
  metrics::Registry registry("mtmc-policyd");
  const auto tracing = daemon::Tracing::Start(flags.daemon, "mtmc-policyd", registry);
  if (!tracing.ok()) return daemon::FailUsage("unusable --otlp-endpoint", tracing.status());
  std::atomic<bool> has_model = flags.model.empty();
  // Ahead of the model, which may take minutes to load.
  const auto endpoints = daemon::Endpoints::OpenHttp(
      flags.daemon, registry, {{.name = "model", .check = [&has_model] {
                                  return has_model ? absl::OkStatus()
                                                   : absl::UnavailableError("it is loaded");
                                }}});
  if (!endpoints.ok()) return daemon::Fail("cannot serve", endpoints.status());
  RulesPolicy rules;
  std::unique_ptr<Policy> lm;
  if (!flags.model.empty()) {
    absl::StatusOr<std::unique_ptr<Policy>> loaded = LoadModel(flags);
    if (!loaded.ok()) {
      return daemon::FailUsage("cannot load --model", loaded.status());
    }
    lm = *std::move(loaded);
    has_model = true;
    Log(LogLevel::kInfo, "model loaded",
        {{"model", lm->description()}, {"digest", lm->model_digest()}});
  }
  std::vector<Policy*> policies = {&rules};
  if (lm)
    policies.insert(flags.default_policy == "lm" ? policies.begin() : policies.end(), lm.get());
  return Serve(policies, registry, **endpoints, shutdown);
}

}  // namespace
}  // namespace mtmc::policy

int main(int argc, char** argv) { return mtmc::policy::Main(argc, argv); }
