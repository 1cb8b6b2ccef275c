// SPDX-License-Identifier: Apache-2.0
#include "worker/runner/client.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "mtmc/v1/runner.pb.h"
#include "worker/builder/party_exchange.h"

namespace mtmc::worker {
namespace {

// Several times what opening takes with libtorch on a cold disk; a candidate's
// deadline does not bound it, because it is not the candidate's work.
constexpr absl::Duration kOpenTimeout = absl::Seconds(120);

}  // namespace

RunnerClient::RunnerClient(Options options) : options_(std::move(options)) {}

RunnerClient::~RunnerClient() = default;

absl::StatusOr<std::unique_ptr<ChildProcess>> RunnerClient::StartProcess() {
  std::vector<std::string> argv = {options_.program, "--scratch", options_.scratch};
  for (std::string& flag : options_.tools.ToFlags()) argv.push_back(std::move(flag));
  // Two names in turn: the spare's text must not remove that of the process
  // that is running.
  return ChildProcess::Start({.argv = std::move(argv),
                              .scratch = options_.scratch,
                              .name = absl::StrCat("runner-", num_started_++ % 2),
                              .is_cancelled = options_.is_cancelled});
}

bool RunnerClient::EnsureProcess(Reply<v1::RunnerResponse>& reply, absl::Time deadline) {
  if (process_) return true;
  if (spare_) {
    process_ = std::move(spare_);
  } else {
    auto started = StartProcess();
    if (!started.ok()) {
      reply.detail =
          absl::StrCat("could not be started: ", std::string(started.status().message()));
      return false;
    }
    process_ = *std::move(started);
  }
  if (open_) {
    reply = ExchangeWith<v1::RunnerRequest, v1::RunnerResponse>(
        process_, *open_, ++sequence_, std::max(deadline, absl::Now() + kOpenTimeout));
    if (!process_) return false;
  }
  return true;
}

Reply<v1::RunnerResponse> RunnerClient::Call(const v1::RunnerRequest& request,
                                             absl::Duration timeout) {
  const absl::Time start = absl::Now();
  Reply<v1::RunnerResponse> reply;
  // A new process opens by itself what was open; a new Open replaces that.
  if (request.has_open()) {
    open_.reset();
    process_.reset();
  }
  if (!EnsureProcess(reply, start + timeout)) return reply;
  reply = ExchangeWith<v1::RunnerRequest, v1::RunnerResponse>(process_, request, ++sequence_,
                                                              absl::Now() + timeout);
  if (reply.is_answered() && request.has_open()) {
    open_ = std::make_unique<v1::RunnerRequest>(request);
    open_->mutable_open()->set_measure_rates(false);
    auto spare = StartProcess();
    if (spare.ok()) spare_ = *std::move(spare);
  }
  if (reply.is_answered() && reply.response.is_context_lost()) process_.reset();
  if (!process_) {
    base::Log(base::LogLevel::kWarning, "runner process ended", {{"detail", reply.detail}});
    if (!spare_) {
      auto spare = StartProcess();
      if (spare.ok()) spare_ = *std::move(spare);
    }
  }
  return reply;
}

}  // namespace mtmc::worker
