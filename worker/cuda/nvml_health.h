// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "worker/device/device_event.h"

namespace mtmc::worker {

// What the driver's management library reports about the health of one GPU: ECC
// errors and the driver's own events, which NVIDIA numbers as XID.
class NvmlHealth {
 public:
  // Events from now on. Null where the library or the device is not there; a
  // source that the device lacks (ECC on a consumer's GPU) stays silent. `uuid` as
  // in DeviceFacts.
  static std::unique_ptr<NvmlHealth> Find(const std::string& uuid);

  ~NvmlHealth();
  NvmlHealth(const NvmlHealth&) = delete;
  NvmlHealth& operator=(const NvmlHealth&) = delete;

  // Those since the last call. Other processes on the device cause events too.
  // About 100 us.
  std::vector<DeviceEvent> TakeEvents();

 private:
  struct Api;

  NvmlHealth(const Api& api, void* device);

  void TakeDriverEvents(std::vector<DeviceEvent>& events);
  void TakeEccErrors(std::vector<DeviceEvent>& events);
  unsigned long long CountEccErrors(int type) const;

  const Api& api_;
  void* const device_;
  // Null where events cannot be had.
  void* event_set_ = nullptr;
  // Counts at the last call, corrected and uncorrected.
  unsigned long long seen_[2] = {0, 0};
};

}  // namespace mtmc::worker
