// SPDX-License-Identifier: Apache-2.0
#include "client/stack/local_stack.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/subprocess.h"

namespace mtmc::client {
namespace {

// A daemon drains on SIGTERM; a worker finishes its lease, or gives it back in good time.
constexpr absl::Duration kStopGrace = absl::Seconds(10);
constexpr char kWorkerGrace[] = "4s";

// Looks for the ready file this often while a daemon starts.
constexpr absl::Duration kReadyPoll = absl::Milliseconds(10);

// What a user needs of a log that ends in a failure.
constexpr size_t kLogTailBytes = 1500;

// Not started again sooner than this after its last start, so that a daemon
// that cannot start does not spin.
constexpr absl::Duration kRestartPause = absl::Seconds(1);

std::string Tail(const std::filesystem::path& path) {
  auto text = base::ReadFile(path);
  if (!text.ok()) return "";
  return text->size() <= kLogTailBytes ? *text : text->substr(text->size() - kLogTailBytes);
}

}  // namespace

// One child with the addresses it serves at.
class LocalStack::Daemon {
 public:
  struct Command {
    std::string name;
    std::vector<std::string> arguments;
    // Empty for a daemon without gRPC.
    std::string listen;
  };

  Daemon(const Options& options, Command command)
      : options_(options),
        command_(std::move(command)),
        ready_file_(options.log_dir / absl::StrCat(command_.name, ".", ::getpid(), ".ready")),
        log_(options.log_dir / absl::StrCat(command_.name, ".log")) {}

  ~Daemon() {
    if (process_) process_->Stop(kStopGrace);
    std::error_code ignored;
    std::filesystem::remove(ready_file_, ignored);
  }

  absl::Status Start() {
    std::error_code ignored;
    std::filesystem::remove(ready_file_, ignored);
    base::SubprocessOptions start;
    start.argv = {(options_.program_dir / command_.name).string(), "--ready-file",
                  ready_file_.string(), "--http", http_.empty() ? "127.0.0.1:0" : http_};
    if (!command_.listen.empty()) {
      start.argv.insert(start.argv.end(), {"--listen", grpc_.empty() ? command_.listen : grpc_});
    }
    start.argv.insert(start.argv.end(), command_.arguments.begin(), command_.arguments.end());
    start.standard_output = base::Stdio::File(log_);
    start.standard_error = base::Stdio::File(log_);
    started_ = absl::Now();
    MTMC_ASSIGN_OR_RETURN(base::Subprocess process, base::Subprocess::Start(start));
    process_ = std::move(process);
    return AwaitReady();
  }

  bool IsDead() { return !process_ || process_->Wait(absl::InfinitePast()).ok(); }

  bool MayRestart() const { return absl::Now() - started_ >= kRestartPause; }

  const std::string& name() const { return command_.name; }

  const std::string& grpc() const { return grpc_; }

  const std::string& http() const { return http_; }

 private:
  absl::Status AwaitReady() {
    const absl::Time deadline = started_ + options_.start_timeout;
    while (absl::Now() < deadline) {
      if (ReadReadyFile()) return absl::OkStatus();
      const auto ended = process_->Wait(absl::Now() + kReadyPoll);
      if (ended.ok()) {
        return absl::UnavailableError(absl::StrCat(command_.name, " ", ended->ToString(),
                                                   " before it served; the end of ", log_.string(),
                                                   ":\n", Tail(log_)));
      }
    }
    return absl::UnavailableError(absl::StrCat(command_.name, " did not serve within ",
                                               absl::FormatDuration(options_.start_timeout),
                                               "; see ", log_.string()));
  }

  bool ReadReadyFile() {
    const auto text = base::ReadFile(ready_file_);
    if (!text.ok()) return false;
    const auto ready = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (!ready.is_object()) return false;
    grpc_ = ready.value("grpc", "");
    http_ = ready.value("http", "");
    return true;
  }

  const Options& options_;
  const Command command_;
  const std::filesystem::path ready_file_;
  const std::filesystem::path log_;
  std::optional<base::Subprocess> process_;
  absl::Time started_;
  // As bound at the first start; kept, so that a restart is found again.
  std::string grpc_;
  std::string http_;
};

LocalStack::LocalStack(Options options) : options_(std::move(options)) {}

LocalStack::~LocalStack() {
  std::error_code ignored;
  std::filesystem::remove(options_.stack_file, ignored);
  while (!daemons_.empty()) daemons_.pop_back();
}

absl::StatusOr<std::unique_ptr<LocalStack>> LocalStack::Start(Options options) {
  std::unique_ptr<LocalStack> stack(new LocalStack(std::move(options)));
  MTMC_RETURN_IF_ERROR(stack->StartAll());
  return stack;
}

absl::Status LocalStack::StartAll() {
  MTMC_RETURN_IF_ERROR(base::MakeFolder(options_.data_dir));
  MTMC_RETURN_IF_ERROR(base::MakeFolder(options_.log_dir));
  const auto start = [&](Daemon::Command command) -> absl::StatusOr<std::string> {
    daemons_.push_back(std::make_unique<Daemon>(options_, std::move(command)));
    MTMC_RETURN_IF_ERROR(daemons_.back()->Start());
    return daemons_.back()->grpc();
  };
  std::vector<std::string> policy_arguments;
  if (!options_.policy_model.empty()) policy_arguments = {"--model", options_.policy_model};
  MTMC_ASSIGN_OR_RETURN(const std::string policy,
                        start({"mtmc-policyd", policy_arguments, "127.0.0.1:0"}));
  MTMC_ASSIGN_OR_RETURN(const std::string gateway, start({"mtmc-gateway", {}, "127.0.0.1:0"}));
  MTMC_ASSIGN_OR_RETURN(
      endpoint_,
      start({"mtmc-coordinator",
             {"--data-dir", options_.data_dir.string(), "--policy", policy, "--gateway", gateway},
             options_.listen}));
  std::vector<std::string> worker = {"--coordinator", endpoint_,
                                     "--scratch",     (options_.data_dir / "scratch").string(),
                                     "--grace",       kWorkerGrace};
  if (options_.has_all_devices) {
    worker.push_back("--all-devices");
  } else {
    worker.insert(worker.end(), {"--device", options_.device});
  }
  if (!options_.python.empty()) worker.insert(worker.end(), {"--python", options_.python});
  MTMC_RETURN_IF_ERROR(start({"mtmc-worker", worker, ""}).status());
  nlohmann::json stack = {{"endpoint", endpoint_}, {"pid", ::getpid()}};
  for (const auto& [name, http] : http_endpoints()) stack["http"][name] = http;
  return base::WriteFileAtomically(options_.stack_file, stack.dump());
}

const std::string& LocalStack::endpoint() const { return endpoint_; }

std::vector<std::pair<std::string, std::string>> LocalStack::http_endpoints() const {
  std::vector<std::pair<std::string, std::string>> endpoints;
  for (const auto& daemon : daemons_) endpoints.emplace_back(daemon->name(), daemon->http());
  return endpoints;
}

std::vector<std::string> LocalStack::Supervise() {
  std::vector<std::string> restarted;
  for (const auto& daemon : daemons_) {
    if (!daemon->IsDead() || !daemon->MayRestart()) continue;
    restarted.push_back(daemon->name());
    // A failed start is tried again at the next call.
    daemon->Start().IgnoreError();
  }
  return restarted;
}

}  // namespace mtmc::client
