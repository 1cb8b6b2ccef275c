// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "kernel/program/program.h"
#include "mtmc/v1/evaluation.pb.h"
#include "worker/daemon/session.h"

namespace mtmc::worker {

// Whether a measurement is repeated in a new process.
enum class Confirmation {
  // Nothing to repeat: neither FASTER than the first baseline nor more than three times as
  // fast as any, or the options forbid it.
  kNone,
  // That, but no winner (MayWin).
  kSkipped,
  kNeeded,
};

Confirmation DecideConfirmation(const v1::EvaluationRequest& request,
                                const MeasuredSession& session);

// Whether everything that is asked of a winner is asked whatever its time: nobody is to be beaten,
// and nothing is left for later.
bool IsAskedEverything(const v1::EvaluationRequest& request);

// Whether a measured program may become the best of its search: who asks for nobody to be beaten
// takes everybody for one.
bool IsAhead(const v1::EvaluationRequest& request, const MeasuredSession& session);

// Whether everything that is asked of a winner has to be: it is ahead, and that is not deferred.
bool MayWin(const v1::EvaluationRequest& request, const MeasuredSession& session);

// Whether a decision is likely to read the profile of a candidate with this
// evaluation, or asks for it: a search goes on from what is the fastest, or about as
// fast. Of the others a profile would cost as much as their verification, for nobody.
bool IsWorthProfile(const v1::EvaluationRequest& request, const v1::Evaluation& evaluation);

// Writes the second session beside the first. The first comparison becomes
// AMBIGUOUS when the sessions disagree: FASTER in the first and SAME or SLOWER in the
// second, or intervals that lie apart by more than the noise floor.
void Confirm(const MeasuredSession& second, v1::Evaluation& evaluation);

// CUPTI's times of single kernels against the events around the whole plan: what the
// kernels took together cannot be much longer than what the plan took. KIND_CHEAT
// when it is, because then the timed executions did less than the profiled one.
// Absent when there is nothing to compare, such as for a hot measurement. Library calls of
// a plan that is captured do not count: those that take several streams, as cuDNN's LSTM,
// wait for the host where they are profiled, one by one, and overlap in a graph.
std::optional<v1::Failure> CheckActivity(const kernel::Program& program, const v1::Profile& profile,
                                         const v1::Measurement& measurement);

}  // namespace mtmc::worker
