// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/security.h"
#include "tests/load/tally.h"

namespace mtmc::load {

struct LoadOptions {
  // HOST:PORT.
  std::string coordinator;
  rpc::ChannelSecurity security;
  int jobs = 100;
  int workers = 10;
  // Streams. Each job has at least one, by which its client learns of the end.
  int watchers = 100;
  // Clients that create a job at a time.
  int submitters = 8;
  // Connections that everybody shares evenly.
  int channels = 8;
  int trials = 100;
  // Jobs that draw their steps themselves, and so ask no policy service.
  bool is_random = false;
  absl::Duration mean_work = absl::ZeroDuration();
  int64_t seed = 1;
  // How long is counted, once every job is there.
  absl::Duration time = absl::Seconds(10);
  // How long the jobs may take to be there.
  absl::Duration setup_time = absl::Minutes(10);
  // HOST:PORT of a gateway with programs that cost nothing, which runs in here; empty is
  // none.
  std::string free_coder;
  // Mean time that it takes for a step.
  absl::Duration mean_think = absl::ZeroDuration();
  // Called when every job is there and the count begins; may be empty.
  std::function<void()> on_begin = {};
};

struct LoadReport {
  Totals totals;
  // Until every job was there.
  absl::Duration setup;
  int watchers = 0;
  std::string ToJson(const LoadOptions& options) const;
  std::string ToText(const LoadOptions& options) const;
};

// Puts a coordinator under load and tells what became of it. Blocks for setup and time.
// DEADLINE_EXCEEDED if the jobs are not there in time, and what FreeCoder::Create says.
absl::StatusOr<LoadReport> RunLoad(const LoadOptions& options);

}  // namespace mtmc::load
