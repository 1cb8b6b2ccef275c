// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker/device/device.h"

namespace mtmc::worker {

// Cold samples of one kernel after one kind of preparation.
struct ColdRow {
  // What was done before the flush, in words.
  std::string before;
  std::vector<double> seconds;
};

// Whether a cold sample depends on what was done before the flush: candidates have
// their inputs rewritten and their outputs poisoned there, baselines have not, so that
// any difference is a bias between the two. Every round takes one sample after each
// preparation, in turns. Thread-compatible.
class ColdBench {
 public:
  // Borrows the device. `binary` is a SyntheticProgram with `loops` multiply-adds.
  static Outcome<std::unique_ptr<ColdBench>> Create(Device& device, std::string_view binary,
                                                    int loops);

  Outcome<std::vector<ColdRow>> Run(int rounds);

 private:
  struct Preparation {
    const char* name;
    std::function<MaybeFailure()> run;
  };

  explicit ColdBench(Device& device) : device_(device) {}

  MaybeFailure Allocate();
  std::vector<Preparation> MakePreparations();
  MaybeFailure Flush();

  Device& device_;
  std::unique_ptr<Module> module_;
  // The input, the output, and the input's bytes out of the kernel's sight.
  std::unique_ptr<Buffer> x_;
  std::unique_ptr<Buffer> y_;
  std::unique_ptr<Buffer> kept_;
  LaunchCommand launch_;
};

}  // namespace mtmc::worker
