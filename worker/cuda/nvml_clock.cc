// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/nvml_clock.h"

#include <dlfcn.h>

#include <array>
#include <type_traits>

namespace mtmc::worker {
namespace {

// Constants of nvml.h, which the wheels do not bring.
constexpr int kSuccess = 0;
constexpr int kSmClock = 1;
constexpr unsigned long long kHardwareSlowdown = 0x08;
constexpr unsigned long long kSoftwareThermal = 0x20;
constexpr unsigned long long kHardwareThermal = 0x40;
constexpr unsigned long long kHardwarePowerBrake = 0x80;
constexpr unsigned long long kThrottleReasons =
    kHardwareSlowdown | kSoftwareThermal | kHardwareThermal | kHardwarePowerBrake;

}  // namespace

struct NvmlClock::Api {
  int (*initialize)() = nullptr;
  int (*find_device)(const char*, void**) = nullptr;
  int (*read_reasons)(void*, unsigned long long*) = nullptr;
  int (*read_clock)(void*, int, unsigned*) = nullptr;
  int (*read_driver_version)(char*, unsigned) = nullptr;
};

std::unique_ptr<NvmlClock> NvmlClock::Find(const std::string& uuid) {
  static const Api& api = *new Api([] {
    Api loaded;
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return loaded;
    auto load = [library](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    };
    load(loaded.initialize, "nvmlInit_v2");
    load(loaded.find_device, "nvmlDeviceGetHandleByUUID");
    // Renamed to ClocksEventReasons in driver 535, which keeps the old name.
    load(loaded.read_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
    load(loaded.read_clock, "nvmlDeviceGetClockInfo");
    load(loaded.read_driver_version, "nvmlSystemGetDriverVersion");
    return loaded;
  }());
  if (!api.initialize || !api.find_device || !api.read_reasons || !api.read_clock ||
      !api.read_driver_version) {
    return nullptr;
  }
  void* device = nullptr;
  if (api.initialize() != kSuccess || api.find_device(uuid.c_str(), &device) != kSuccess) {
    return nullptr;
  }
  return std::unique_ptr<NvmlClock>(new NvmlClock(api, device));
}

bool NvmlClock::IsThrottled() const {
  unsigned long long reasons = 0;
  if (api_.read_reasons(device_, &reasons) != kSuccess) return false;
  return (reasons & kThrottleReasons) != 0;
}

double NvmlClock::ReadHertz() const {
  unsigned megahertz = 0;
  if (api_.read_clock(device_, kSmClock, &megahertz) != kSuccess) return 0;
  return 1e6 * megahertz;
}

std::string NvmlClock::driver_version() const {
  std::array<char, 96> text{};
  api_.read_driver_version(text.data(), static_cast<unsigned>(text.size()) - 1);
  return text.data();
}

}  // namespace mtmc::worker
