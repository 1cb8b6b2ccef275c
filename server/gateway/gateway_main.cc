// SPDX-License-Identifier: Apache-2.0
//
// mtmc-gateway: the micro step as a service. The built-in coder is always there;
// a language model is added when a server or a recording of one is named.
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/executor.h"
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
#include "grpcpp/impl/service_type.h"
#include "server/gateway/breaker_chat_model.h"
#include "server/gateway/builtin_coder.h"
#include "server/gateway/gateway_service.h"
#include "server/gateway/llm_coder.h"
#include "server/gateway/metered_chat_model.h"
#include "server/gateway/open_ai_chat_model.h"
#include "server/gateway/recording.h"
#include "server/gateway/retrying_chat_model.h"
#include "server/gateway/token_prices.h"

namespace mtmc::gateway {
namespace {

using base::Log;
using base::LogLevel;

constexpr char kOpenAiUrl[] = "https://api.openai.com/v1";

// Calls in flight when the daemon is told to stop: the built-in coder needs
// milliseconds, and a model's reply is not worth waiting minutes for.
constexpr absl::Duration kShutdownGrace = absl::Seconds(5);

struct Flags {
  daemon::Flags daemon{.listen = "127.0.0.1:50153", .http = "127.0.0.1:9153"};
  std::string base_url;
  std::string api_key_file;
  std::string model;
  std::string record;
  std::string replay;
  int64_t max_tokens = LlmCoder::Options().max_tokens;
  int64_t max_reply_tokens = LlmCoder::Options().max_reply_tokens;
  double temperature = LlmCoder::Options().temperature;
  int first_byte_timeout_s =
      static_cast<int>(absl::ToInt64Seconds(HttpLimits().first_byte_timeout));
  int total_timeout_s = static_cast<int>(absl::ToInt64Seconds(LlmCoder::Options().total_timeout));
  int llm_threads = 16;
  TokenPrices prices;
};

void Declare(CLI::App& app, Flags& flags) {
  daemon::Declare(app, flags.daemon);
  app.add_option("--base-url", flags.base_url,
                 "OpenAI-compatible server, up to and including /v1; adds the coder llm")
      ->envname("OPENAI_BASE_URL");
  app.add_option("--api-key-file", flags.api_key_file,
                 "file whose first line is the key; default is the variable OPENAI_API_KEY");
  app.add_option("--model", flags.model, "language model of requests that name none");
  auto* record =
      app.add_option("--record", flags.record, "file that every model reply is appended to");
  app.add_option("--replay", flags.replay,
                 "recording that answers instead of a server; adds the coder llm")
      ->excludes(record);
  app.add_option("--max-tokens", flags.max_tokens, "most tokens of one call, prompt and reply")
      ->check(CLI::Range(1000, 10000000))
      ->capture_default_str();
  app.add_option("--max-reply-tokens", flags.max_reply_tokens, "most tokens of one reply")
      ->check(CLI::Range(512, 1000000))
      ->capture_default_str();
  app.add_option("--temperature", flags.temperature, "sampling temperature of the model")
      ->check(CLI::Range(0.0, 2.0))
      ->capture_default_str();
  app.add_option("--first-byte-timeout", flags.first_byte_timeout_s,
                 "longest wait for a model's answer to begin, in seconds")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  app.add_option("--total-timeout", flags.total_timeout_s,
                 "longest time of one model call, retries included, in seconds")
      ->check(CLI::Range(1, 7200))
      ->capture_default_str();
  app.add_option("--usd-per-million-input", flags.prices.input_usd_per_million,
                 "price of a million input tokens in US dollars: what jobs say that they cost")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--usd-per-million-output", flags.prices.output_usd_per_million,
                 "price of a million output tokens in US dollars")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--llm-threads", flags.llm_threads, "most model calls at a time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
}

absl::StatusOr<ApiKey> LoadKey(const Flags& flags) {
  if (!flags.api_key_file.empty()) return ApiKey::ReadFile(flags.api_key_file);
  const char* secret = std::getenv("OPENAI_API_KEY");
  return secret == nullptr ? ApiKey() : ApiKey(secret);
}

// Null when nothing names a language model.
absl::StatusOr<std::unique_ptr<ChatModel>> MakeChatModel(const Flags& flags, base::Clock& clock,
                                                         metrics::Registry& registry) {
  std::unique_ptr<ChatModel> model;
  if (!flags.replay.empty()) {
    MTMC_ASSIGN_OR_RETURN(model, ReplayChatModel::Create(flags.replay));
  } else {
    MTMC_ASSIGN_OR_RETURN(ApiKey key, LoadKey(flags));
    if (flags.base_url.empty() && key.is_empty()) return model;
    const std::string base_url = flags.base_url.empty() ? kOpenAiUrl : flags.base_url;
    const HttpLimits limits = {.first_byte_timeout = absl::Seconds(flags.first_byte_timeout_s)};
    MTMC_ASSIGN_OR_RETURN(model, OpenAiChatModel::Create({base_url, std::move(key), limits}));
    model =
        std::make_unique<RetryingChatModel>(std::move(model), clock, RetryingChatModel::Options());
    model =
        std::make_unique<BreakerChatModel>(std::move(model), clock, BreakerChatModel::Options());
    if (!flags.record.empty()) {
      MTMC_ASSIGN_OR_RETURN(model, RecordingChatModel::Create(std::move(model), flags.record));
    }
  }
  model = std::make_unique<MeteredChatModel>(std::move(model), clock, registry, flags.prices);
  return model;
}

int Serve(const Flags& flags, const std::vector<CoderSlot>& coders, metrics::Registry& registry,
          base::ShutdownSignal& shutdown) {
  const std::unique_ptr<grpc::Service> service = MakeGatewayService(coders, registry);
  const auto endpoints = daemon::Endpoints::Open(
      flags.daemon, registry, {.services = {{service.get(), "mtmc.v1.MicroCodingService"}}});
  if (!endpoints.ok()) return daemon::Fail("cannot serve", endpoints.status());
  Log(LogLevel::kInfo, "serving",
      {{"grpc", (*endpoints)->grpc_address()}, {"coders", coders.size()}});
  shutdown.Wait();
  (*endpoints)->Shutdown(absl::Now() + kShutdownGrace);
  return 0;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("The micro step of mtmc: writes the program that an action asks for.",
               "mtmc-gateway");
  Declare(app, flags);
  if (const auto code = daemon::ParseAndInitLogging(app, argc, argv, flags.daemon)) return *code;
  daemon::ForbidCoreDumps();

  base::ShutdownSignal shutdown;
  const daemon::ClockWatch clock_watch(shutdown.token());
  base::RealClock clock;
  metrics::Registry registry("mtmc-gateway");
  const auto tracing = daemon::Tracing::Start(flags.daemon, "mtmc-gateway", registry);
  if (!tracing.ok()) return daemon::FailUsage("unusable --otlp-endpoint", tracing.status());
  absl::StatusOr<std::unique_ptr<ChatModel>> model = MakeChatModel(flags, clock, registry);
  if (!model.ok()) return daemon::FailUsage("cannot set up the language model", model.status());
  BuiltinCoder builtin;
  base::Executor builtin_executor({.name = "builtin", .num_threads = 2});
  std::vector<CoderSlot> coders = {{&builtin, &builtin_executor}};
  std::unique_ptr<LlmCoder> llm;
  // Beyond these waits a caller's deadline would pass in the queue.
  base::Executor llm_executor({.name = "llm", .num_threads = flags.llm_threads, .max_queued = 64});
  if (*model != nullptr) {
    llm = std::make_unique<LlmCoder>(
        **model, &builtin,
        LlmCoder::Options{.default_model = flags.model,
                          .max_tokens = flags.max_tokens,
                          .max_reply_tokens = flags.max_reply_tokens,
                          .temperature = flags.temperature,
                          .total_timeout = absl::Seconds(flags.total_timeout_s),
                          .prices = flags.prices});
    coders.push_back({llm.get(), &llm_executor});
  }
  return Serve(flags, coders, registry, shutdown);
}

}  // namespace
}  // namespace mtmc::gateway

int main(int argc, char** argv) { return mtmc::gateway::Main(argc, argv); }
