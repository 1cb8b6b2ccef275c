// SPDX-License-Identifier: Apache-2.0
#include "worker/runner/client.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "worker/builder/party_exchange.h"
#include "worker/builder/reaper.h"

namespace mtmc::worker {
namespace {

// Several times what opening takes with libtorch on a cold disk; a candidate's
// deadline does not bound it, because it is not the candidate's work.
constexpr absl::Duration kOpenTimeout = absl::Seconds(120);
constexpr absl::Duration kOpenSlice = absl::Milliseconds(20);

// The spare, and a fresh process.
constexpr int kAttempts = 2;

// Freeing what a program holds: milliseconds.
constexpr absl::Duration kUnloadTimeout = absl::Seconds(10);

// For device memory that a killed process still holds.
constexpr absl::Duration kMemoryTimeout = absl::Seconds(10);

using Ending = Reply<pipe::v1::RunnerResponse>::Ending;

bool IsOutOfMemory(const Reply<pipe::v1::RunnerResponse>& reply) {
  return reply.is_answered() && reply.response.failure().kind() == v1::Failure::KIND_OUT_OF_MEMORY;
}

std::string NotStarted(const absl::Status& status) {
  return absl::StrCat("could not be started: ", std::string(status.message()));
}

// The first line of a report, which names the fault.
std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

RunnerClient::RunnerClient(Options options) : options_(std::move(options)) {}

RunnerClient::~RunnerClient() = default;

Reply<pipe::v1::RunnerResponse> RunnerClient::Call(const pipe::v1::RunnerRequest& request,
                                                   absl::Duration timeout) {
  if (request.has_open()) return Open(request, timeout);
  RunnerReply reply;
  if (!process_ && !Replace(reply)) return reply;
  HoldSpare(request);
  reply = Exchange(request, timeout);
  // The memory may be that of a process which was killed before and whose context
  // the driver still takes down; this program is not to blame for it.
  const bool is_crowded = IsOutOfMemory(reply) && !Reaper::Default().AwaitAll(absl::Now());
  if (is_crowded && process_ && Reaper::Default().AwaitAll(absl::Now() + kMemoryTimeout)) {
    reply = Exchange(request, timeout);
  }
  // What was loaded is executed next, and a spare would be in its way.
  const bool is_loaded = request.has_load() && process_ && !reply.response.has_failure();
  if (wants_spare_ && !is_loaded) StartSpare();
  return reply;
}

void RunnerClient::Retire() { process_.reset(); }

void RunnerClient::Alternate() {
  if (process_ && spare_.process) {
    pipe::v1::RunnerRequest unload;
    unload.mutable_unload();
    Exchange(unload, kUnloadTimeout);
    resting_ = std::move(process_);
  }
  Retire();
}

void RunnerClient::Rest() {
  process_.reset();
  resting_.reset();
  spare_ = Runner();
  StartSpare();
}

std::string RunnerClient::CheckHealth() {
  RunnerReply ignored;
  if (!process_ && needs_canary_ && Replace(ignored)) StartSpare();
  return fault_;
}

bool RunnerClient::has_spare() const {
  if (!spare_.process) return false;
  return spare_.open_sequence == 0 || spare_.process->AwaitAnswer(absl::InfinitePast());
}

Reply<pipe::v1::RunnerResponse> RunnerClient::Open(const pipe::v1::RunnerRequest& request,
                                                   absl::Duration timeout) {
  open_.reset();
  process_.reset();
  spare_ = Runner();
  RunnerReply reply;
  auto started = Start();
  if (!started.ok()) {
    reply.ending = Ending::kUnavailable;
    reply.detail = NotStarted(started.status());
    return reply;
  }
  process_ = std::move(started->process);
  reply = ExchangeWith<pipe::v1::RunnerRequest, pipe::v1::RunnerResponse>(
      process_, request, ++sequence_, absl::Now() + timeout);
  if (!reply.is_answered() || reply.response.has_failure()) return reply;
  open_ = std::make_unique<pipe::v1::RunnerRequest>(request);
  open_->mutable_open()->set_measure_rates(false);
  StartSpare();
  return reply;
}

Reply<pipe::v1::RunnerResponse> RunnerClient::Exchange(const pipe::v1::RunnerRequest& request,
                                                       absl::Duration timeout) {
  auto reply = ExchangeWith<pipe::v1::RunnerRequest, pipe::v1::RunnerResponse>(
      process_, request, ++sequence_, absl::Now() + timeout);
  if (!process_) {
    EndProcess(reply.detail);
  } else if (reply.response.is_context_lost()) {
    const absl::Time start = absl::Now();
    EndProcess(absl::StrCat("lost its context\n", process_->Bury()));
    last_replacement_.burial = absl::Now() - start;
  }
  return reply;
}

void RunnerClient::EndProcess(const std::string& detail) {
  base::Log(base::LogLevel::kWarning, "runner process ended", {{"detail", detail}});
  process_.reset();
  needs_canary_ = true;
  last_replacement_ = {};
}

bool RunnerClient::Replace(RunnerReply& reply) {
  last_replacement_.opening = last_replacement_.canary = absl::ZeroDuration();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Runner runner = std::exchange(spare_, Runner());
    if (runner.process) {
      if (std::exchange(is_spare_held_, false)) runner.process->Resume();
    } else {
      auto started = Start();
      if (!started.ok()) {
        reply.detail = NotStarted(started.status());
        continue;
      }
      runner = *std::move(started);
    }
    if (!AwaitOpen(runner, reply)) {
      if (reply.ending == Ending::kCancelled) {
        spare_ = std::move(runner);
        return false;
      }
      continue;
    }
    if (needs_canary_ && !RunCanary(runner, reply)) continue;
    Employ(std::move(runner));
    return true;
  }
  fault_ = FirstLine(reply.detail);
  needs_canary_ = true;
  reply.ending = Ending::kUnavailable;
  base::Log(base::LogLevel::kError, "the device does not work", {{"detail", reply.detail}});
  return false;
}

void RunnerClient::Employ(Runner runner) {
  process_ = std::move(runner.process);
  needs_canary_ = false;
  fault_.clear();
  spare_.process = std::exchange(resting_, nullptr);
  wants_spare_ = !spare_.process;
}

// Waits until `runner` has answered its Open. When the work is called off
// meanwhile, the runner goes on opening.
bool RunnerClient::AwaitOpen(Runner& runner, RunnerReply& reply) {
  if (runner.open_sequence == 0) return true;
  const absl::Time start = absl::Now();
  const absl::Time deadline = start + kOpenTimeout;
  while (!runner.process->AwaitAnswer(std::min(deadline, absl::Now() + kOpenSlice)) &&
         absl::Now() < deadline) {
    if (!options_.is_cancelled()) continue;
    reply.ending = Ending::kCancelled;
    return false;
  }
  reply = ReceiveFrom<pipe::v1::RunnerResponse>(runner.process,
                                                std::exchange(runner.open_sequence, 0), deadline);
  last_replacement_.opening += absl::Now() - start;
  if (reply.is_answered() && !reply.response.has_failure()) return true;
  reply.detail = absl::StrCat(
      "the device could not be opened again: ", reply.response.failure().message(), reply.detail);
  return false;
}

bool RunnerClient::RunCanary(Runner& runner, RunnerReply& reply) {
  pipe::v1::RunnerRequest request;
  request.mutable_canary();
  request.set_sequence(++sequence_);
  const absl::Time start = absl::Now();
  const absl::Time deadline = start + options_.canary_timeout;
  auto sent = ToReply<pipe::v1::RunnerResponse>(runner.process->Send(request, deadline));
  if (!sent.is_answered()) {
    reply = std::move(sent);
  } else {
    // A call that is off must not end it: its answer is for those that follow.
    runner.process->AwaitAnswer(deadline);
    reply = ReceiveFrom<pipe::v1::RunnerResponse>(runner.process, sequence_, deadline);
  }
  last_replacement_.canary += absl::Now() - start;
  const auto& result = reply.response.canary();
  for (const std::string& event : result.events()) {
    base::Log(base::LogLevel::kWarning, "device event", {{"event", event}});
  }
  if (reply.is_answered() && result.fault().empty()) return true;
  if (reply.is_answered()) {
    reply.detail = absl::StrCat("the canary fails: ", result.fault());
  } else {
    const bool is_late = reply.ending == Ending::kTimedOut;
    reply.detail =
        absl::StrCat("the canary ", is_late ? "hangs" : "ends its process", ": ", reply.detail);
  }
  base::Log(base::LogLevel::kWarning, "canary failed", {{"detail", reply.detail}});
  return false;
}

absl::StatusOr<RunnerClient::Runner> RunnerClient::Start() {
  std::vector<std::string> argv = {options_.program, "--scratch", options_.scratch};
  for (std::string& flag : options_.tools.ToFlags()) argv.push_back(std::move(flag));
  Runner runner;
  MTMC_ASSIGN_OR_RETURN(runner.process,
                        ChildProcess::Start({.argv = std::move(argv),
                                             .scratch = options_.scratch,
                                             .name = "runner",
                                             .confinement = options_.confinement,
                                             .max_resident_bytes = options_.max_resident_bytes,
                                             .is_cancelled = options_.is_cancelled}));
  if (open_) {
    pipe::v1::RunnerRequest open = *open_;
    open.set_sequence(runner.open_sequence = ++sequence_);
    // Fits into the channel's buffer, so that it does not wait for the process.
    const auto sent = runner.process->Send(open, absl::Now() + kOpenTimeout);
    if (sent.ending != ChildProcess::Ending::kAnswered) return absl::AbortedError(sent.detail);
  }
  return runner;
}

void RunnerClient::StartSpare() {
  is_spare_held_ = false;
  wants_spare_ = false;
  auto started = Start();
  if (started.ok()) {
    spare_ = *std::move(started);
  } else {
    base::Log(base::LogLevel::kWarning, "there is no spare runner", {{"reason", started.status()}});
  }
}

// Opening a device would disturb what is timed on it.
void RunnerClient::HoldSpare(const pipe::v1::RunnerRequest& request) {
  if (!spare_.process) return;
  const bool is_timing = request.has_time() || request.has_profile();
  if (is_timing && !is_spare_held_ && !has_spare()) {
    spare_.process->Pause();
    is_spare_held_ = true;
  } else if ((request.has_load() || request.has_unload()) && is_spare_held_) {
    spare_.process->Resume();
    is_spare_held_ = false;
  }
}

}  // namespace mtmc::worker
