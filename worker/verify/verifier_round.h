// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "mtmc/v1/evaluation.pb.h"
#include "worker/verify/party.h"
#include "worker/verify/reference_queue.h"
#include "worker/verify/verification.h"
#include "worker/verify/verifier.h"

// Inside of Verifier: how Verify gets all workloads through both processes.
namespace mtmc::worker {

// A prepared workload of the reference process.
struct Verifier::Subject {
  v1::Workload workload;
  // Its handle there.
  int64_t prepared = 0;
  std::string oracle;
  google::protobuf::RepeatedPtrField<pipe::v1::SharedTensor> inputs;

  // What a comparison needs.
  Subject WithoutInputs() const { return {workload, prepared, oracle, {}}; }
};

// Where outputs stay while the next workload is executed, neither process waits for the
// other:
//
//   runner     | execute 1 | execute 2             | execute 3 ...
//   reference  | prepare 2 | compare 1 | prepare 3 | compare 2 | prepare 4 ...
//
// The workload for PrepareFresh is prepared beside execution 1.
//
// What a workload shows counts in the order of the workloads either way.
class Verifier::Round {
 public:
  Round(Verifier& verifier, const Options& options);

  Verification Run(const std::vector<v1::Workload>& workloads);

 private:
  using RunnerReply = Reply<pipe::v1::RunnerResponse>;
  using ReferenceReply = Reply<pipe::v1::ReferenceResponse>;
  using MaybeEnd = std::optional<Verification>;

  // What the reference process has yet to say about the outputs of an execution.
  struct Comparison {
    int execution = 0;
    Subject subject;
    bool is_repeat = false;
    ReferenceQueue::Answer answer;
  };

  Verification RunAll(const std::vector<v1::Workload>& workloads);
  void KeepFresh();
  void Release(const ReferenceReply& prepared);
  ReferenceQueue::Answer Prepare(const v1::Workload& workload, bool keeps_last);

  // Executes on the current workload; some twice, the second time under load. Equal bytes
  // need no second comparison.
  MaybeEnd Execute();
  MaybeEnd Call(const pipe::v1::RunnerRequest& request, RunnerReply& reply);
  MaybeEnd Compare(const RunnerReply& reply, bool is_repeat);

  // Awaits the comparisons of executions up to that one.
  MaybeEnd Settle(int execution);
  MaybeEnd Settle(Comparison& comparison);

  // `last`, unless an execution before shows a failure. A reference process that loses what
  // a runner that ended had shared is no trouble beside it.
  Verification SettleAfter(Verification last);

  Verification WithChecks(Verification verification);

  Verifier& verifier_;
  const absl::Time deadline_;
  const bool prepares_fresh_;
  const std::vector<double> numbers_;
  // Of the workloads that are made for this program.
  const uint64_t own_salt_;
  ReferenceQueue queue_;
  // Valid while the workload for PrepareFresh is under way.
  ReferenceQueue::Answer fresh_;
  // In the order of their executions, which are numbered from 1.
  std::deque<Comparison> comparisons_;
  int num_executions_ = 0;
  // Of the last execution, or of all.
  bool outputs_stay_;
  // Of the workloads that are settled.
  std::optional<Verification> all_;
  v1::VerificationSummary checks_;
};

}  // namespace mtmc::worker
