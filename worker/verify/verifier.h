// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "mtmc/v1/evaluation.pb.h"
#include "worker/verify/party.h"
#include "worker/verify/reference_calls.h"
#include "worker/verify/verification.h"

namespace mtmc::worker {

// Inputs that lie on the runner's device under a number, with what the loaded
// program made of them.
struct KeptInputs {
  int64_t id = 0;
  // Of outputs that were compared with the oracle.
  uint64_t digest = 0;
  // Two executions, with another poison and under load, gave equal digests.
  bool is_reproducible = false;
};

// Inputs that lie on the runner's device and that the program has never seen.
struct FreshInputs {
  int64_t id = 0;
  // Handle of the workload in the reference process.
  int64_t prepared = 0;
};

// Compares the program that the runner has loaded with the oracle of the
// reference, on the public workload and on hidden ones: fresh inputs of several
// distributions and other parameters at fresh addresses, outputs and scratch
// poisoned with other random words each time. The expected outputs stay in the
// reference process; the runner never sees them.
//
//   runner.Load(program)  ->  Verifier(runner, reference).Verify({...})
//
// Leaves both sides on a hidden seed, so that timing can follow: the public inputs, which
// anybody may know, are never timed.
// Thread-compatible. Blocks up to `timeout`.
class Verifier {
 public:
  struct Options {
    // Seeds besides the public one, at least 1. Of three, whoever has executed on one cannot
    // foresee the next.
    int hidden_seeds = 3;
    // For all workloads together.
    absl::Duration timeout = absl::Seconds(60);
    // Every distribution, too, each with a seed of its own.
    bool has_distributions = true;
    // PrepareFresh comes next: does what it can of it meanwhile, where outputs stay.
    bool prepares_fresh = false;
    // Whether outputs stay over the next execution, as the runner said when it loaded the
    // program; if it is not known, the first execution tells.
    bool outputs_stay = false;
    // Positive numbers of the program's text, for VerifyWinner: inputs go around those that the
    // problem has not.
    std::vector<double> numbers = {};
  };

  // Borrows both, which must outlive it. Verify calls `reference` from another thread, too,
  // while it calls `runner`.
  Verifier(RunnerParty& runner, ReferenceParty& reference);
  ~Verifier();

  // Has the reference process prepare the workloads of Verify ahead of it, and those of
  // VerifyWinner where `is_winner`, one after the other, until `is_done`: it remembers what they
  // cost most for. What goes wrong goes wrong again.
  void PrepareAhead(const Options& options, bool is_winner, const std::function<bool()>& is_done);

  // The workloads that every program is verified on. It runs twice on hidden seeds, the second
  // time under load: races show. The runner keeps their inputs.
  Verification Verify(const Options& options);

  // The workloads that a program is verified on besides if it may become the best. Its checks
  // are those of these workloads alone. Kept inputs are forgotten.
  Verification VerifyWinner(const Options& options);

  // Executes on every kept set of inputs again, those on which it was timed, and compares each
  // with the oracle.
  Verification VerifyKept(absl::Duration timeout);

  // Executes on the inputs prepared last and compares, without drawing new ones: for the
  // variants of a sweep.
  Verification VerifyAgain(absl::Duration timeout);

  // Executes on the inputs prepared last and looks at the time alone: seconds on
  // the device, or what the candidate did wrong.
  std::variant<double, v1::Failure> ExecuteAgain(absl::Duration timeout);

  // Compares what the last execution, timed or not, left in the outputs.
  // REQUIRES: it ran on the workload prepared last.
  Verification Recheck(absl::Duration timeout);

  // Verified inputs, drawn as `get_inputs` does, that the runner keeps for the
  // loaded program; empty where it refused. Valid until the next Load.
  const std::vector<KeptInputs>& kept() const { return kept_; }

  // Draws a workload that was never used and has the runner keep it unexecuted.
  // Absent when the runner refused or the reference could not (trouble()).
  std::optional<FreshInputs> PrepareFresh(absl::Duration timeout);

  // Forgets what Verify has prepared for PrepareFresh, if that was not called.
  void DropFresh();

  // Compares what the last execution left, which ran on `fresh`, and forgets the
  // workload.
  Verification CheckFresh(const FreshInputs& fresh, absl::Duration timeout);

  // Compares what the last execution left, which ran on the kept inputs `id`.
  Verification CheckKept(int64_t id, absl::Duration timeout);

  // Set when the last call could not be answered by the reference process.
  const std::optional<ReferenceTrouble>& trouble() const { return trouble_; }

 private:
  struct Subject;
  class Round;

  void ForgetKept();

  // What the reference process has prepared; null when it dropped the workload or on
  // trouble().
  std::unique_ptr<Subject> MakeSubject(const v1::Workload& workload,
                                       Reply<pipe::v1::ReferenceResponse> reply);
  pipe::v1::RunnerRequest MakeExecute(const Subject& subject);
  // Has the runner keep what the reference process has prepared, unexecuted; as PrepareFresh.
  std::optional<FreshInputs> KeepFresh(const Reply<pipe::v1::ReferenceResponse>& prepared,
                                       absl::Time deadline);
  // With `forgets`, the reference process forgets the workload.
  Verification PublishAndCompare(const Subject& subject, absl::Duration timeout,
                                 bool forgets = false);
  // What the answer to a Compare says; sets trouble().
  Verification Judge(const Subject& subject, const Reply<pipe::v1::ReferenceResponse>& reply);

  RunnerParty& runner_;
  ReferenceParty& reference_;
  // The workload prepared last.
  std::unique_ptr<Subject> current_;
  // Workloads whose inputs the runner keeps, by position in `kept_`.
  std::vector<Subject> kept_subjects_;
  std::vector<KeptInputs> kept_;
  // What Verify has prepared for PrepareFresh.
  std::optional<FreshInputs> fresh_;
  std::optional<ReferenceTrouble> trouble_;
};

// The failure that a runner's reply stands for; absent when it answered and the
// candidate did nothing wrong. KIND_UNSPECIFIED when the process was lost by
// nobody's fault. `stage` is where the caller is.
std::optional<v1::Failure> FailureOf(const Reply<pipe::v1::RunnerResponse>& reply, v1::Stage stage);

}  // namespace mtmc::worker
