// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "mtmc/v1/evaluation.pb.h"
#include "mtmc/v1/runner.pb.h"
#include "worker/daemon/program_build.h"
#include "worker/daemon/stage_end.h"
#include "worker/verify/party.h"
#include "worker/verify/verifier.h"

namespace mtmc::worker {

// Finds the fastest of a program's variants on the inputs that were verified
// last. Each variant must give right results before it is timed.
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
    // Best first, failed ones last.
    std::vector<v1::Variant> variants;
    // Of the fastest, among those given to Run.
    size_t best = 0;
    // Device seconds that the samples took.
    double kernel_seconds = 0;
  };

  // Borrows both. The verifier must have executed a workload.
  Sweep(RunnerParty& runner, Verifier& verifier, Options options);

  // `variants` is not empty, and its first one is loaded and verified.
  std::variant<Outcome, StageEnd> Run(const std::vector<BuiltVariant>& variants);

 private:
  MaybeEnd Screen(const BuiltVariant& built, bool is_loaded, v1::Variant& variant);

  RunnerParty& runner_;
  Verifier& verifier_;
  const Options options_;
  double kernel_seconds_ = 0;
};

// The request that puts one variant on the device.
v1::RunnerRequest LoadRequestOf(const BuiltVariant& variant, const std::string& text,
                                const std::vector<std::string>& allowed_calls);

}  // namespace mtmc::worker
