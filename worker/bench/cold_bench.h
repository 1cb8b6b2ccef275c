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
  // What was done before the flush, or where code or data lay, or who timed it, in words.
  std::string name;
  std::vector<double> seconds;
};

// Whether a cold sample depends on what was done before the flush: candidates have
// their inputs rewritten and their outputs poisoned there, baselines have not, so that
// any difference is a bias between the two. And whether it depends on where code and
// data lie, and on the streams and events in use, which nobody chooses. Every round takes one
// sample under each condition, in turns. Thread-compatible.
class ColdBench {
 public:
  // Borrows the devices, which are one device opened several times; the first is what
  // everything else is compared with. `binary` is a SyntheticProgram with `loops`
  // multiply-adds. REQUIRES: at least one device.
  static Outcome<std::unique_ptr<ColdBench>> Create(const std::vector<Device*>& devices,
                                                    std::string_view binary, int loops);

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
    Device* device = nullptr;
  };

  ColdBench(const std::vector<Device*>& devices, std::string_view binary, int loops)
      : devices_(devices), device_(*devices.front()), binary_(binary), loops_(loops) {}

  MaybeFailure Prepare();
  Outcome<Place> MakePlace(Device& device);
  LaunchCommand MakeLaunch(const Place& code, const Place& data) const;
  std::vector<Condition> MakeConditions();
  MaybeFailure Flush();

  const std::vector<Device*> devices_;
  Device& device_;
  const std::string binary_;
  const int loops_;
  // Of the first device: the first one is what everything else is compared with.
  std::vector<Place> places_;
  // One of each other device.
  std::vector<Place> elsewhere_;
  // The input's bytes out of the kernel's sight.
  std::unique_ptr<Buffer> kept_;
};

}  // namespace mtmc::worker
