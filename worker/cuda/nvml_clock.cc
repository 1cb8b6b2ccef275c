// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/nvml_clock.h"

#include <array>

#include "worker/cuda/nvml.h"

namespace mtmc::worker {
namespace {

// Constants of nvml.h, which the wheels do not bring.
constexpr int kSmClock = 1;
constexpr unsigned long long kHardwareSlowdown = 0x08;
constexpr unsigned long long kSoftwareThermal = 0x20;
constexpr unsigned long long kHardwareThermal = 0x40;
constexpr unsigned long long kHardwarePowerBrake = 0x80;
constexpr unsigned long long kThrottleReasons =
    kHardwareSlowdown | kSoftwareThermal | kHardwareThermal | kHardwarePowerBrake;

}  // namespace

struct NvmlClock::Api {
  int (*read_reasons)(void*, unsigned long long*) = nullptr;
  int (*read_clock)(void*, int, unsigned*) = nullptr;
  int (*read_driver_version)(char*, unsigned) = nullptr;
};

std::unique_ptr<NvmlClock> NvmlClock::Find(const std::string& uuid) {
  static const Api& api = *new Api([] {
    Api loaded;
    // Renamed to ClocksEventReasons in driver 535, which keeps the old name.
    LoadNvmlFunction(loaded.read_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
    LoadNvmlFunction(loaded.read_clock, "nvmlDeviceGetClockInfo");
    LoadNvmlFunction(loaded.read_driver_version, "nvmlSystemGetDriverVersion");
    return loaded;
  }());
  if (!api.read_reasons || !api.read_clock || !api.read_driver_version) return nullptr;
  void* const device = FindNvmlDevice(uuid);
  if (!device) return nullptr;
  return std::unique_ptr<NvmlClock>(new NvmlClock(api, device));
}

bool NvmlClock::IsThrottled() const {
  unsigned long long reasons = 0;
  if (api_.read_reasons(device_, &reasons) != kNvmlSuccess) return false;
  return (reasons & kThrottleReasons) != 0;
}

double NvmlClock::ReadHertz() const {
  unsigned megahertz = 0;
  if (api_.read_clock(device_, kSmClock, &megahertz) != kNvmlSuccess) return 0;
  return 1e6 * megahertz;
}

std::string NvmlClock::driver_version() const {
  std::array<char, 96> text{};
  api_.read_driver_version(text.data(), static_cast<unsigned>(text.size()) - 1);
  return text.data();
}

}  // namespace mtmc::worker
