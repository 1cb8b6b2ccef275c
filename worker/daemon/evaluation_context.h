// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "google/protobuf/duration.pb.h"
#include "mtmc/v1/device.pb.h"
#include "mtmc/v1/evaluation.pb.h"
#include "mtmc/v1/tensor.pb.h"
#include "mtmc/v1/worker.pb.h"
#include "worker/daemon/counter_rule.h"
#include "worker/measure/process_offset.h"
#include "worker/verify/party.h"

namespace mtmc::worker {

// What every evaluation of one worker works with.
struct EvaluationContext {
  // The children. Borrowed.
  struct Parties {
    BuilderParty& builder;
    RunnerParty& runner;
    ReferenceParty& reference;
  };

  struct Options {
    // As the runner reported it.
    v1::DeviceFacts device;
    // Index of the device among those of its backend.
    int device_index = 0;
    // Resource name of this worker and of its present session.
    std::string worker;
    std::string session;
    // Names of the isolation mechanisms in force.
    std::vector<std::string> isolation;
    // The level that they add up to.
    v1::Isolation isolation_level = v1::ISOLATION_PROCESS;
    // PyTorch's name of the device: `cpu` or `cuda:0`.
    std::string torch_device = "cpu";
    // Lets the next call to the runner go to another process; may be empty.
    std::function<void()> change_runner = {};
    // Frees what the children keep on the device, all but their contexts; may be empty.
    std::function<void()> give_memory_back = {};
    // Whether the worker has room for the files of its work; may be empty.
    std::function<absl::Status()> check_room = {};
  };

  // Local path of a blob, fetched if it is not there yet. Thread-safe.
  using Fetch = std::function<absl::StatusOr<std::string>(const v1::Digest&)>;

  // Text of the program to evaluate.
  absl::StatusOr<std::string> ReadProgram(const v1::EvaluationRequest& request) const;

  Parties parties;
  Fetch fetch;
  base::Clock& clock;
  Options options;
  // Of this worker, for all its evaluations. Borrowed.
  CounterRule& counter_rule;
  ProcessOffsets& offsets;
  // Of delays, which nobody shall foresee. One for all evaluations, so that kernels that were
  // compiled with them need not be again.
  uint32_t delay_seed = std::random_device()();
};

// Deadlines of the stages where the job names none. Tracing a large model takes
// tens of seconds; everything else is seconds unless it hangs.
inline constexpr absl::Duration kLoadTimeout = absl::Minutes(5);
inline constexpr absl::Duration kBuildTimeout = absl::Minutes(2);
inline constexpr absl::Duration kVerifyTimeout = absl::Minutes(2);
inline constexpr absl::Duration kTuneTimeout = absl::Minutes(2);
inline constexpr absl::Duration kMeasureTimeout = absl::Minutes(2);
inline constexpr absl::Duration kProfileTimeout = absl::Seconds(30);

// The refusal of work that asks for more isolation than this worker has, with reason
// ISOLATION_TOO_LOW; nothing when it has enough. The coordinator grants no such lease;
// this holds should the level have fallen since.
std::optional<v1::WorkerFailure> RefuseIsolation(v1::Isolation asked,
                                                 const EvaluationContext::Options& options);

// `asked` if it is positive, else `fallback`.
absl::Duration TimeoutOr(const google::protobuf::Duration& asked, absl::Duration fallback);

}  // namespace mtmc::worker
