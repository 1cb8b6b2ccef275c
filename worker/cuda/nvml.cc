// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/nvml.h"

#include <dlfcn.h>

namespace mtmc::worker {

void* FindNvmlFunction(const char* name) {
  static void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  return library ? dlsym(library, name) : nullptr;
}

void* FindNvmlDevice(const std::string& uuid) {
  int (*initialize)() = nullptr;
  int (*find_device)(const char*, void**) = nullptr;
  LoadNvmlFunction(initialize, "nvmlInit_v2");
  LoadNvmlFunction(find_device, "nvmlDeviceGetHandleByUUID");
  void* device = nullptr;
  if (!initialize || !find_device || initialize() != kNvmlSuccess ||
      find_device(uuid.c_str(), &device) != kNvmlSuccess) {
    return nullptr;
  }
  return device;
}

}  // namespace mtmc::worker
