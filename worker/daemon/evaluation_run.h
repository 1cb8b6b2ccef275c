// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernel/program/program.h"
#include "kernel/program/stall.h"
#include "mtmc/v1/problem.pb.h"
#include "mtmc/v1/worker.pb.h"
#include "worker/daemon/build_queue.h"
#include "worker/daemon/evaluation_context.h"
#include "worker/daemon/execution_meter.h"
#include "worker/daemon/program_build.h"
#include "worker/daemon/roomy_runner.h"
#include "worker/daemon/session.h"
#include "worker/daemon/stage_end.h"
#include "worker/verify/serial_party.h"
#include "worker/verify/verifier.h"

namespace mtmc::worker {

// One evaluation from its request to its result: build, verify, tune, measure,
// profile. Used once.
class EvaluationRun {
 public:
  // Called at the start of every stage.
  using Progress = std::function<void(v1::Stage)>;

  // Borrows all, which must outlive it.
  EvaluationRun(const EvaluationContext& context, const v1::EvaluationRequest& request,
                const Progress& progress);

  // Blocks; each stage within its own deadline.
  v1::LeaseResult Execute();

 private:
  MaybeEnd RunStages();
  MaybeEnd InStage(v1::Stage stage, MaybeEnd (EvaluationRun::*body)());
  void Finish(StageEnd end);

  // The stages.
  MaybeEnd Build();
  MaybeEnd Verify();
  MaybeEnd Tune();
  MaybeEnd Measure();
  MaybeEnd Profile();

  MaybeEnd LoadReference();
  MaybeEnd LoadVariant(const BuiltVariant& variant, absl::Duration timeout);
  // `is_last` tells that it is the one to measure.
  MaybeEnd VerifyVariant(const BuiltVariant& variant, bool is_last);
  Verifier::Options VerifierOptions() const;
  MaybeEnd TakeSession(const SessionPlan& plan, MeasuredSession& session);
  // A second session.
  MaybeEnd MeasureAgain();
  // Everything that is asked only of a program that may become the best. Leaves the device on
  // a hidden seed.
  MaybeEnd VerifyWinner();
  MaybeEnd VerifyTimedSets();

  // The program with some of its blocks delayed at `places`.
  struct Stalled {
    kernel::StallPlaces places;
    BuildQueue::Answer build;
  };

  // Compiles it on another thread, for each of the places at which something can be delayed.
  std::vector<Stalled> BuildStalled();
  // Executes such a build, and leaves it on the device.
  MaybeEnd VerifyStalled(Stalled& stalled, int runs);
  // Puts the program on the device again. It is timed once it was executed there.
  MaybeEnd Reload(bool in_another_process);
  MaybeEnd VerifyReloaded();
  MaybeEnd Convict(v1::Failure failure);
  MaybeEnd ConvictUnless(const Verification& verification);
  MaybeEnd Accept(const Verification& verification);
  void Unload();

  v1::Evaluation& evaluation() { return *result_.mutable_evaluation(); }

  const EvaluationContext& context_;
  const v1::EvaluationRequest& request_;
  const v1::EvaluationOptions& options_;
  const Progress& progress_;
  // Verification calls it from a thread of its own.
  SerialParty<pipe::v1::ReferenceRequest, pipe::v1::ReferenceResponse> reference_;
  RoomyRunner roomy_runner_;
  // What the stages call.
  ExecutionMeter runner_;
  Verifier verifier_;
  v1::Stage stage_ = v1::STAGE_UNSPECIFIED;
  std::string text_;
  std::optional<kernel::Program> program_;
  v1::Inspection inspection_;
  // Those that compiled; the default one is first.
  std::vector<BuiltVariant> variants_;
  // Index of the one on the device.
  size_t loaded_variant_ = 0;
  // Of the program that is on the device.
  bool outputs_stay_ = false;
  // What holds on all workloads so far.
  Verification verified_;
  // See IsAhead.
  bool is_ahead_ = false;
  v1::LeaseResult result_;
  // Waits for what nobody needs any more before the rest goes.
  BuildQueue builds_;
};

}  // namespace mtmc::worker
