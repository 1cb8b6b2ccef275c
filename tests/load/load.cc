// SPDX-License-Identifier: Apache-2.0
#include "tests/load/load.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "tests/load/free_coder.h"
#include "tests/load/pacer.h"
#include "tests/load/simulated_client.h"
#include "tests/load/simulated_worker.h"
#include "tests/load/turns.h"

namespace mtmc::load {
namespace {

// What calls each other lives here together, and ends together.
class Cast {
 public:
  explicit Cast(const LoadOptions& options)
      : options_(options), turns_(options.submitters), missing_jobs_(options.jobs) {
    for (int i = 0; i < options.channels; ++i) {
      channels_.push_back(rpc::MakeChannel(
          options.coordinator, {.retries_unavailable = false, .security = options.security}));
    }
    for (int i = 0; i < options.workers; ++i) {
      workers_.push_back(std::make_unique<SimulatedWorker>(field_, ChannelOf(i), i,
                                                           options.mean_work, options.seed + i));
    }
    for (int i = 0; i < options.jobs; ++i) {
      const int more = i < options.watchers % options.jobs ? 1 : 0;
      const int watchers = std::max(1, options.watchers / options.jobs + more);
      num_watchers_ += watchers;
      clients_.push_back(std::make_unique<SimulatedClient>(
          field_, ChannelOf(i),
          SimulatedClient::Options{.number = i,
                                   .watchers = watchers,
                                   .trials = options.trials,
                                   .is_random = options.is_random,
                                   .seed = options.seed,
                                   .on_first_job = [this] { NoteJob(); }},
          turns_));
    }
  }

  ~Cast() {
    calls_.CancelAll();
    pacer_.Stop();
  }

  absl::StatusOr<LoadReport> Run() {
    const absl::Time start = absl::Now();
    for (const auto& worker : workers_) worker->Start();
    for (const auto& client : clients_) client->Start();
    if (!are_all_there_.WaitForNotificationWithTimeout(options_.setup_time)) {
      return absl::DeadlineExceededError(
          absl::StrCat("not all of ", options_.jobs, " jobs were created within ",
                       absl::FormatDuration(options_.setup_time),
                       "; ask for fewer or look at the coordinator's log. First error: ",
                       tally_.Read(absl::Now()).first_error));
    }
    const absl::Time begin = absl::Now();
    tally_.Begin(begin);
    if (options_.on_begin) options_.on_begin();
    absl::Notification is_over;
    pacer_.After(options_.time, [&is_over] { is_over.Notify(); });
    is_over.WaitForNotification();
    return LoadReport{
        .totals = tally_.Read(absl::Now()), .setup = begin - start, .watchers = num_watchers_};
  }

 private:
  const std::shared_ptr<grpc::Channel>& ChannelOf(int number) const {
    return channels_[static_cast<size_t>(number) % channels_.size()];
  }

  void NoteJob() {
    if (missing_jobs_.fetch_sub(1) == 1) are_all_there_.Notify();
  }

  const LoadOptions& options_;
  Tally tally_;
  Pacer pacer_;
  CallSet calls_;
  const Field field_{.tally = tally_, .pacer = pacer_, .calls = calls_};
  Turns turns_;
  std::atomic<int> missing_jobs_;
  absl::Notification are_all_there_;
  int num_watchers_ = 0;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::vector<std::unique_ptr<SimulatedWorker>> workers_;
  std::vector<std::unique_ptr<SimulatedClient>> clients_;
};

double PerSecond(int64_t count, absl::Duration time) {
  return static_cast<double>(count) / std::max(absl::ToDoubleSeconds(time), 1e-9);
}

nlohmann::json ToJsonObject(const Spread& spread) {
  return {{"count", spread.count}, {"p50", spread.p50_ms}, {"p99", spread.p99_ms}};
}

}  // namespace

absl::StatusOr<LoadReport> RunLoad(const LoadOptions& options) {
  std::unique_ptr<FreeCoder> coder;
  if (!options.free_coder.empty()) {
    MTMC_ASSIGN_OR_RETURN(coder, FreeCoder::Create(options.free_coder, options.mean_think));
  }
  return Cast(options).Run();
}

std::string LoadReport::ToJson(const LoadOptions& options) const {
  const nlohmann::ordered_json json = {
      {"jobs", options.jobs},
      {"workers", options.workers},
      {"watchers", watchers},
      {"mean_work_ms", absl::ToDoubleMilliseconds(options.mean_work)},
      {"mean_think_ms", absl::ToDoubleMilliseconds(options.mean_think)},
      {"trials", options.trials},
      {"strategy", options.is_random ? "random" : "mtmc"},
      {"setup_seconds", absl::ToDoubleSeconds(setup)},
      {"seconds", absl::ToDoubleSeconds(totals.time)},
      {"evaluations", totals.evaluations},
      {"evaluations_per_second", PerSecond(totals.evaluations, totals.time)},
      {"inspections", totals.inspections},
      {"jobs_ended", totals.jobs_ended},
      {"events_per_second", PerSecond(totals.events, totals.time)},
      {"ready_to_lease_ms", ToJsonObject(totals.ready_to_lease)},
      {"result_to_lease_ms", ToJsonObject(totals.result_to_lease)},
      {"disordered_events", totals.disordered_events},
      {"twice_finished", totals.twice_finished},
      {"repeated_leases", totals.repeated_leases},
      {"breaks", totals.breaks},
      {"errors", totals.errors},
      {"first_error", totals.first_error}};
  return json.dump();
}

std::string LoadReport::ToText(const LoadOptions& options) const {
  const Totals& t = totals;
  std::string text = absl::StrFormat(
      "%d jobs, %d workers, %d watchers; all there after %.1f s, counted for %.1f s\n"
      "evaluations      %d, %.1f a second\n"
      "ready to lease   p50 %.1f ms, p99 %.1f ms\n"
      "result to lease  p50 %.1f ms, p99 %.1f ms\n"
      "events           %.0f a second, %d out of order\n"
      "faults           %d finished twice, %d leases repeated, %d errors; %d calls made again\n",
      options.jobs, options.workers, watchers, absl::ToDoubleSeconds(setup),
      absl::ToDoubleSeconds(t.time), t.evaluations, PerSecond(t.evaluations, t.time),
      t.ready_to_lease.p50_ms, t.ready_to_lease.p99_ms, t.result_to_lease.p50_ms,
      t.result_to_lease.p99_ms, PerSecond(t.events, t.time), t.disordered_events, t.twice_finished,
      t.repeated_leases, t.errors, t.breaks);
  if (!t.first_error.empty()) absl::StrAppend(&text, "first error      ", t.first_error, "\n");
  return text;
}

}  // namespace mtmc::load
