// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker/device/device.h"

namespace mtmc::worker {

// Cold samples of one kernel under one condition.
struct ColdRow {
  // What was done before the flush, or where code or data lay, in words.
  std::string name;
  std::vector<double> seconds;
};

// Whether a cold sample depends on what was done before the flush: candidates have
// their inputs rewritten and their outputs poisoned there, baselines have not, so that
// any difference is a bias between the two. And whether it depends on where code and
// data lie, which nobody chooses. Every round takes one sample under each condition, in
// turns. Thread-compatible.
class ColdBench {
 public:
  // Borrows the device. `binary` is a SyntheticProgram with `loops` multiply-adds.
  static Outcome<std::unique_ptr<ColdBench>> Create(Device& device, std::string_view binary,
                                                    int loops);

  Outcome<std::vector<ColdRow>> Run(int rounds);

 private:
  // Code and data of a kernel: buffers of the input and the output.
  struct Place {
    std::unique_ptr<Module> module;
    std::unique_ptr<Buffer> x;
    std::unique_ptr<Buffer> y;
  };

  struct Condition {
    std::string name;
    std::function<MaybeFailure()> prepare;
    LaunchCommand launch;
  };

  ColdBench(Device& device, std::string_view binary, int loops)
      : device_(device), binary_(binary), loops_(loops) {}

  MaybeFailure Prepare();
  Outcome<std::unique_ptr<Buffer>> Allocate();
  Outcome<Place> MakePlace();
  LaunchCommand MakeLaunch(const Place& code, const Place& data) const;
  std::vector<Condition> MakeConditions();
  MaybeFailure Flush();

  Device& device_;
  const std::string binary_;
  const int loops_;
  // The first one is what everything else is compared with.
  std::vector<Place> places_;
  // The input's bytes out of the kernel's sight.
  std::unique_ptr<Buffer> kept_;
};

}  // namespace mtmc::worker
