// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace mtmc::worker {

// What the driver's management library says about the clock of one GPU.
class NvmlClock {
 public:
  // Null where the library or the device is not there; times are then taken as
  // they come. `uuid` as in DeviceFacts.
  static std::unique_ptr<NvmlClock> Find(const std::string& uuid);

  // The hardware is slowing the clock now: too hot, a power brake, or its own
  // protection. The cap of the power budget is not among them: it belongs to
  // what the chip can do. About 10 us.
  bool IsThrottled() const;

  // Of the multiprocessors now; 0 if it cannot be read.
  double ReadHertz() const;

  // Such as `580.159.04`.
  std::string driver_version() const;

 private:
  struct Api;

  NvmlClock(const Api& api, void* device) : api_(api), device_(device) {}

  const Api& api_;
  void* const device_;
};

}  // namespace mtmc::worker
