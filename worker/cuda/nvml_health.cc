// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/nvml_health.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "worker/cuda/nvml.h"

namespace mtmc::worker {
namespace {

// Constants and types of nvml.h, which the wheels do not bring.
constexpr int kCorrected = 0;
constexpr int kUncorrected = 1;
constexpr int kSinceDriverLoad = 0;
constexpr unsigned long long kDriverErrors = 0x8;

struct Event {
  void* device;
  unsigned long long type;
  // The XID.
  unsigned long long data;
  unsigned gpu_instance;
  unsigned compute_instance;
};

// Events that a program brings about by itself (bad address, time-out of its own,
// killed while it ran), from NVIDIA's list of XID errors; all others are the
// hardware's or the driver's.
constexpr std::array<unsigned long long, 6> kProgramErrors = {13, 31, 43, 45, 68, 109};

// A burst of one fault repeats its event for every multiprocessor.
constexpr int kMaxEvents = 64;

}  // namespace

struct NvmlHealth::Api {
  int (*count_ecc_errors)(void*, int, int, unsigned long long*) = nullptr;
  int (*create_event_set)(void**) = nullptr;
  int (*register_events)(void*, unsigned long long, void*) = nullptr;
  int (*wait_for_event)(void*, Event*, unsigned) = nullptr;
  int (*free_event_set)(void*) = nullptr;

  bool has_events() const {
    return create_event_set && register_events && wait_for_event && free_event_set;
  }
};

std::unique_ptr<NvmlHealth> NvmlHealth::Find(const std::string& uuid) {
  static const Api& api = *new Api([] {
    Api loaded;
    LoadNvmlFunction(loaded.count_ecc_errors, "nvmlDeviceGetTotalEccErrors");
    LoadNvmlFunction(loaded.create_event_set, "nvmlEventSetCreate");
    LoadNvmlFunction(loaded.register_events, "nvmlDeviceRegisterEvents");
    LoadNvmlFunction(loaded.wait_for_event, "nvmlEventSetWait_v2");
    LoadNvmlFunction(loaded.free_event_set, "nvmlEventSetFree");
    return loaded;
  }());
  void* const device = FindNvmlDevice(uuid);
  if (!device) return nullptr;
  return std::unique_ptr<NvmlHealth>(new NvmlHealth(api, device));
}

NvmlHealth::NvmlHealth(const Api& api, void* device) : api_(api), device_(device) {
  for (const int type : {kCorrected, kUncorrected}) seen_[type] = CountEccErrors(type);
  if (!api_.has_events() || api_.create_event_set(&event_set_) != kNvmlSuccess) return;
  if (api_.register_events(device_, kDriverErrors, event_set_) == kNvmlSuccess) return;
  api_.free_event_set(event_set_);
  event_set_ = nullptr;
}

NvmlHealth::~NvmlHealth() {
  if (event_set_) api_.free_event_set(event_set_);
}

unsigned long long NvmlHealth::CountEccErrors(int type) const {
  unsigned long long count = 0;
  if (!api_.count_ecc_errors ||
      api_.count_ecc_errors(device_, type, kSinceDriverLoad, &count) != kNvmlSuccess) {
    return 0;
  }
  return count;
}

std::vector<DeviceEvent> NvmlHealth::TakeEvents() {
  std::vector<DeviceEvent> events;
  TakeEccErrors(events);
  TakeDriverEvents(events);
  return events;
}

void NvmlHealth::TakeEccErrors(std::vector<DeviceEvent>& events) {
  for (const int type : {kCorrected, kUncorrected}) {
    const unsigned long long count = CountEccErrors(type);
    if (count > seen_[type]) {
      events.push_back(
          {.text = absl::StrCat("ECC: ", count - seen_[type],
                                type == kCorrected ? " corrected" : " uncorrected", " errors"),
           .is_fault = type == kUncorrected});
    }
    seen_[type] = count;
  }
}

void NvmlHealth::TakeDriverEvents(std::vector<DeviceEvent>& events) {
  Event event{};
  for (int i = 0; event_set_ && i < kMaxEvents; ++i) {
    if (api_.wait_for_event(event_set_, &event, /*timeout_ms=*/0) != kNvmlSuccess) return;
    const bool is_fault =
        std::find(kProgramErrors.begin(), kProgramErrors.end(), event.data) == kProgramErrors.end();
    events.push_back({.text = absl::StrCat("XID ", event.data), .is_fault = is_fault});
  }
}

}  // namespace mtmc::worker
