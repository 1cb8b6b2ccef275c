// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/bench/calibration.h"
#include "worker/bench/synthetic_runner.h"
#include "worker/measure/comparison.h"
#include "worker/measure/interleaved.h"

namespace mtmc::worker {

// One session of one case.
struct SessionRow {
  // The second process ran the candidate.
  bool is_swapped = false;
  ComparisonResult result;
  double session_seconds = 0;
  double candidate_seconds = 0;
  double noise_ratio = 0;
  int samples = 0;
  std::string stopped_by;
};

// All sessions of one length and one slowdown.
struct CompareCase {
  // Wanted device time of the baseline.
  double seconds = 0;
  // Candidate time over baseline time, as wanted and by the calibrated line.
  double slowdown = 1;
  double real_slowdown = 1;
  int64_t baseline_loops = 0;
  int64_t candidate_loops = 0;
  std::vector<SessionRow> rows;

  int Count(ComparisonResult::Outcome outcome) const;
};

// How often the worker's own procedure says what is true: the synthetic program in
// two processes, as candidate and baseline are in production, with candidates that
// are slower by known ratios. Which process runs the candidate changes from session to
// session: what the two differ by helps nobody, and can be told from their roles.
class CompareBench {
 public:
  struct Options {
    std::vector<double> lengths = {5e-6, 100e-6, 5e-3};
    std::vector<double> slowdowns = {1.00, 1.03, 1.05, 1.10};
    // Sessions of every case.
    int runs = 100;
    // Then both processes are replaced: one pair of them tells nothing about another.
    int sessions_per_process = 10;
    uint64_t seed = 1;
    TurnPlan turns;
    std::string text;
    std::string binary;
    // Called with a length that no number of loops takes, and why.
    std::function<void(double seconds, std::string_view reason)> left_out = [](double,
                                                                               std::string_view) {};
    // Called after every session with how many are done and how many there are.
    std::function<void(int done, int total)> progress = [](int, int) {};
  };

  // Borrows both. REQUIRES: both are open.
  CompareBench(SyntheticRunner& first, SyntheticRunner& second, Options options);

  // Finds the loops of every case, then runs the sessions of all cases in one random
  // order, so that whatever changes on the device meets all of them.
  absl::StatusOr<std::vector<CompareCase>> Run();

 private:
  absl::StatusOr<std::vector<CompareCase>> MakeCases();
  absl::StatusOr<double> Measure(int64_t loops);
  absl::StatusOr<SessionRow> RunSession(const CompareCase& one);

  SyntheticRunner& first_;
  SyntheticRunner& second_;
  const Options options_;
  ProcessOffsets offsets_;
};

}  // namespace mtmc::worker
