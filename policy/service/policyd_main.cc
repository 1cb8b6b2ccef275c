// SPDX-License-Identifier: Apache-2.0
//
// mtmc-policyd: the macro step as a service. The rules are always there; a
// language model is loaded when --model names a Hugging Face folder.
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/shutdown_signal.h"
#include "common/config/paths.h"
#include "common/config/python_environment.h"
#include "common/config/version.h"
#include "common/metrics/http_endpoint.h"
#include "common/metrics/metrics.h"
#include "common/rpc/server.h"
#include "grpcpp/impl/service_type.h"
#include "policy/model/model_scorer.h"
#include "policy/rules/rules_policy.h"
#include "policy/service/lm_policy.h"
#include "policy/service/policy_service.h"

namespace mtmc::policy {
namespace {

using base::Log;
using base::LogLevel;

constexpr int kExitOther = 1;
constexpr int kExitUsage = 2;
constexpr int kExitUnavailable = 69;

// Longest time that calls in flight get when the daemon is told to stop: a
// batch of a small model on a CPU.
constexpr absl::Duration kShutdownGrace = absl::Seconds(5);

struct Flags {
  std::string listen = "127.0.0.1:50152";
  std::string http = "127.0.0.1:9152";
  std::string ready_file;
  std::string log_level = "info";
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
  app.set_version_flag("--version", "mtmc-policyd " + std::string(config::Version()));
  app.add_option("--listen", flags.listen, "gRPC address HOST:PORT; port 0 takes a free one")
      ->capture_default_str();
  app.add_option("--http", flags.http,
                 "address of /metrics, /healthz and /readyz; empty switches them off")
      ->capture_default_str();
  app.add_option("--ready-file", flags.ready_file, "JSON file written once the daemon serves");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->envname("MTMC_LOG")
      ->capture_default_str();
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

int Fail(const absl::Status& status, std::string_view what) {
  Log(LogLevel::kError, what, {{"reason", status}});
  const bool is_environment = status.code() == absl::StatusCode::kUnavailable;
  return is_environment ? kExitUnavailable : kExitOther;
}

absl::Status WriteReadyFile(const std::string& path, const rpc::RpcServer& server,
                            const metrics::HttpEndpoint* http) {
  const std::string http_address =
      http == nullptr ? std::string() : absl::StrCat("127.0.0.1:", http->port());
  return base::WriteFileAtomically(
      path, absl::StrCat("{\"grpc\":\"", server.address(), "\",\"http\":\"", http_address,
                         "\",\"pid\":", getpid(), "}\n"));
}

int Serve(const Flags& flags, const std::vector<Policy*>& policies,
          base::ShutdownSignal& shutdown) {
  metrics::Registry registry("mtmc-policyd");
  const std::unique_ptr<grpc::Service> service = MakePolicyService(policies, registry);
  absl::StatusOr<std::unique_ptr<rpc::RpcServer>> server =
      rpc::RpcServer::Create({.address = flags.listen, .services = {service.get()}});
  if (!server.ok()) return Fail(server.status(), "cannot serve gRPC");
  std::unique_ptr<metrics::HttpEndpoint> http;
  if (!flags.http.empty()) {
    absl::StatusOr<std::unique_ptr<metrics::HttpEndpoint>> created =
        metrics::HttpEndpoint::Create(registry, {.address = flags.http});
    if (!created.ok()) return Fail(created.status(), "cannot serve HTTP");
    http = *std::move(created);
  }
  if (!flags.ready_file.empty()) {
    const absl::Status written = WriteReadyFile(flags.ready_file, **server, http.get());
    if (!written.ok()) return Fail(written, "cannot write the ready file");
  }
  Log(LogLevel::kInfo, "serving",
      {{"grpc", (*server)->address()}, {"default_policy", policies.front()->name()}});
  shutdown.Wait();
  (*server)->Shutdown(absl::Now() + kShutdownGrace);
  return 0;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("The macro step of mtmc: which optimization to try next.", "mtmc-policyd");
  Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  const absl::StatusOr<LogLevel> level = base::ParseLogLevel(flags.log_level);
  base::InitLogging({.program = "mtmc-policyd", .level = level.value_or(LogLevel::kInfo)});
  if (!level.ok()) {
    Log(LogLevel::kError, "unusable --log-level", {{"reason", level.status()}});
    return kExitUsage;
  }
  if (flags.default_policy == "lm" && flags.model.empty()) {
    Log(LogLevel::kError, "--default-policy lm needs --model FOLDER");
    return kExitUsage;
  }

  base::ShutdownSignal shutdown;
  RulesPolicy rules;
  std::unique_ptr<Policy> lm;
  if (!flags.model.empty()) {
    absl::StatusOr<std::unique_ptr<Policy>> loaded = LoadModel(flags);
    if (!loaded.ok()) {
      // The flag asked for something that cannot be had: a usage error.
      Log(LogLevel::kError, "cannot load --model",
          {{"folder", flags.model}, {"reason", loaded.status()}});
      return kExitUsage;
    }
    lm = *std::move(loaded);
    Log(LogLevel::kInfo, "model loaded",
        {{"model", lm->description()}, {"digest", lm->model_digest()}});
  }
  std::vector<Policy*> policies = {&rules};
  if (lm)
    policies.insert(flags.default_policy == "lm" ? policies.begin() : policies.end(), lm.get());
  return Serve(flags, policies, shutdown);
}

}  // namespace
}  // namespace mtmc::policy

int main(int argc, char** argv) { return mtmc::policy::Main(argc, argv); }
