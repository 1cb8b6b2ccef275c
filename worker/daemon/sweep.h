// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "mtmc/v1/evaluation.pb.h"
#include "worker/daemon/program_build.h"
#include "worker/daemon/stage_end.h"
#include "worker/verify/party.h"
#include "worker/verify/verifier.h"

namespace mtmc::worker {

// Finds the fastest of a program's variants on the inputs that were verified
// last, as a race in two heats:
//
//   every variant   one execution, and samples unless it is far behind the best
//   the best few    right results first, then more samples
//
// A variant that is wrong and fast wins the first heat and no more: the next in
// rank takes its place.
class Sweep {
 public:
  struct Options {
    // Program text, and operators that it may call.
    std::string text;
    std::vector<std::string> allowed_calls;
    bool is_cold = true;
    // When it passes, the best so far is taken.
    absl::Time deadline;
  };

  struct Outcome {
    // Best first, failed ones last, each with its last time.
    std::vector<v1::Variant> variants;
    // Of the fastest, among those given to Run.
    size_t best = 0;
  };

  // Borrows both. The verifier must have executed a workload.
  Sweep(RunnerParty& runner, Verifier& verifier, Options options);

  // `variants` is not empty.
  std::variant<Outcome, StageEnd> Run(const std::vector<BuiltVariant>& variants);

 private:
  struct Entry {
    const BuiltVariant& built;
    v1::Variant variant;
    bool is_final = false;
  };

  // Each is absent unless the evaluation is over; a variant's own failure is
  // written into it.
  MaybeEnd RunFirstHeat();
  MaybeEnd RunFinal();
  MaybeEnd Screen(Entry& entry);
  MaybeEnd Verify(Entry& entry);
  MaybeEnd Time(Entry& entry, int samples);
  MaybeEnd TakeDown(v1::Failure failure, Entry& entry);

  absl::Duration TimeLeft() const;
  std::vector<size_t> Ranking() const;
  Outcome Finish();

  RunnerParty& runner_;
  Verifier& verifier_;
  const Options options_;
  std::vector<Entry> entries_;
  double best_seconds_ = 0;
};

// The request that puts one variant on the device.
pipe::v1::RunnerRequest LoadRequestOf(const BuiltVariant& variant, const std::string& text,
                                      const std::vector<std::string>& allowed_calls);

}  // namespace mtmc::worker
