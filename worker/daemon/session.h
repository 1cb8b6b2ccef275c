// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "google/protobuf/repeated_field.h"
#include "mtmc/pipe/v1/reference.pb.h"
#include "mtmc/v1/device.pb.h"
#include "mtmc/v1/evaluation.pb.h"
#include "mtmc/v1/problem.pb.h"
#include "worker/measure/interleaved.h"
#include "worker/measure/process_offset.h"
#include "worker/measure/stopping_rule.h"
#include "worker/verify/party.h"
#include "worker/verify/verifier.h"

namespace mtmc::worker {

// Loads a problem into the reference process; cheap when it is loaded already.
// The response holds the inspection or the user's mistake. UNAVAILABLE when the
// process died again and again, DEADLINE_EXCEEDED when it was killed for being
// late, each with its last words.
absl::StatusOr<pipe::v1::ReferenceResponse> LoadProblem(
    ReferenceParty& reference, const std::string& path, const v1::Problem& problem,
    const std::string& torch_device, const v1::ReferenceLimits& limits, absl::Duration timeout);

// Times baselines of the loaded problem on the public workload. Errors as those
// of LoadProblem; FAILED_PRECONDITION when a baseline cannot be run.
absl::StatusOr<std::vector<v1::BaselineTime>> TimeBaselines(
    ReferenceParty& reference, const google::protobuf::RepeatedField<int>& baselines,
    base::Clock& clock, absl::Duration timeout);

// One measurement of a loaded and verified program against its baselines.
struct MeasuredSession {
  v1::Measurement measurement;
  std::vector<v1::Comparison> comparisons;
  // Device time of the baselines' executions.
  double baseline_seconds = 0;
};

struct SessionParties {
  RunnerParty& runner;
  ReferenceParty& reference;
  Verifier& verifier;
  // Of the worker's processes.
  ProcessOffsets& offsets;
};

// How a session is taken.
struct SessionPlan {
  std::vector<v1::Baseline> baselines;
  bool is_cold = true;
  NoiseStoppingRule::Options rule;
  TurnPlan turns;
  // One execution on inputs that the program has never seen.
  bool has_fresh_inputs = true;
};

// How turns are cut on `device`.
TurnPlan TurnsOn(const v1::DeviceFacts& device);

// What `options` ask for on `device`.
SessionPlan FirstSession(const v1::EvaluationOptions& options, const v1::DeviceFacts& device);

// What a confirmation needs: the first baseline, and an interval that is narrow enough
// to contradict. A third of the time of the first session.
SessionPlan SecondSession(const v1::EvaluationOptions& options, const v1::DeviceFacts& device);

// Samples the runner's program and the baselines in turns, and checks what the timed
// executions did (TimedCandidate); adds to `checks` how many they were. The times of
// the candidate are multiplied by `checks.fresh_slowdown`, also by that of a session
// before. Blocks up to `timeout`. REQUIRES: the verifier has verified what the runner
// has loaded.
std::variant<MeasuredSession, v1::Failure, ReferenceTrouble> MeasureSession(
    const SessionParties& parties, base::Clock& clock, const SessionPlan& plan,
    absl::Duration timeout, v1::VerificationSummary& checks);

}  // namespace mtmc::worker
