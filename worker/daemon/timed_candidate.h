// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mtmc/v1/evaluation.pb.h"
#include "worker/daemon/runner_sampler.h"
#include "worker/measure/fresh_inputs.h"
#include "worker/verify/verifier.h"

namespace mtmc::worker {

// A candidate while it is timed: its samples, and the proof that what was timed is
// what was verified.
//
// 1. Executions take turns on the inputs that the verifier has verified, in an
//    order that nobody can foresee; the digest of a random share of them must be
//    that of the verified outputs.
// 2. At a random turn, one execution runs on inputs that the program has never
//    seen. Its outputs are compared with the oracle, and its time with the rest: a
//    program that replays what it knows is wrong there, or slower. Where it is slower and
//    noise may be the reason, the fresh time counts (fresh_slowdown). Where a part of the
//    samples is far faster than the rest, further fresh executions tell whether they are
//    replays.
// 3. Where a program is not reproducible bit by bit, or a digest differs, the last
//    execution of some turns is compared with the oracle instead.
//
// Thread-compatible.
class TimedCandidate {
 public:
  struct Options {
    bool is_cold = true;
    // Point 2 above; a second session leaves it out.
    bool has_fresh_inputs = true;
    absl::Time deadline = absl::InfiniteFuture();
  };

  // Borrows both. REQUIRES: the verifier has verified what the runner has loaded.
  TimedCandidate(RunnerParty& runner, Verifier& verifier, Options options);

  // A Sampler. ABORTED when failure() or trouble() is set.
  absl::StatusOr<SampleBlock> Take(const BlockRequest& request);

  // The checks that must follow the last sample. `usual` are all samples. ABORTED as
  // Take.
  absl::Status Conclude(const std::vector<double>& usual);

  // What the candidate did wrong.
  const std::optional<v1::Failure>& failure() const { return failure_; }

  // What the reference process could not do.
  const std::optional<ReferenceTrouble>& trouble() const { return trouble_; }

  // Adds how many executions were timed and checked, and fresh_slowdown, which the
  // caller multiplies the samples by.
  void AddCounts(v1::VerificationSummary& checks) const;

 private:
  absl::StatusOr<SampleBlock> TakeOn(const std::vector<int64_t>& kept, const BlockRequest& request);
  absl::StatusOr<SampleBlock> TakeFresh(const BlockRequest& request);
  absl::StatusOr<SampleBlock> TakeCompared(const BlockRequest& request);
  absl::Status CheckLast(int64_t id);
  absl::Status CheckModes(const std::vector<double>& usual);
  // One more fresh execution beside known ones. False when there is no memory for it.
  absl::StatusOr<bool> TakeMoreFresh();
  absl::Status CheckFreshTimes(const std::vector<double>& usual);
  absl::Status CheckUnseen(const std::vector<double>& usual);
  absl::Status Accept(Verification verification, const char* when);
  absl::Status Fail(v1::Failure failure);
  void CompareDigests(const std::vector<pipe::v1::RunnerResponse::CheckedExecution>& checked);
  bool IsReproducible() const;
  int64_t DrawKept();
  absl::Duration Remaining() const;

  Verifier& verifier_;
  const Options options_;
  RunnerSampler sampler_;
  std::mt19937 random_;
  std::vector<int64_t> kept_;
  int turn_ = 0;
  // Turn of the execution on fresh inputs.
  int fresh_turn_ = 0;
  // Executions that are to be compared with the oracle.
  int num_to_compare_ = 0;
  int num_checked_ = 0;
  std::vector<FreshExecution> fresh_;
  int num_fresh_ = 0;
  double fresh_slowdown_ = 0;
  // Of the block in which the host saw least beyond the events.
  std::optional<double> unseen_seconds_;
  std::optional<v1::Failure> failure_;
  std::optional<ReferenceTrouble> trouble_;
};

}  // namespace mtmc::worker
