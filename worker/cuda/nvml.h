// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace mtmc::worker {

// The driver's management library, opened at the first use and never closed. Types
// and constants of nvml.h, which the wheels do not bring, are written out by who
// uses them. Thread-safe.
inline constexpr int kNvmlSuccess = 0;

// Null where the library or the function is not there.
void* FindNvmlFunction(const char* name);

template <typename Function>
void LoadNvmlFunction(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(FindNvmlFunction(name));
}

// Handle of the GPU, `uuid` as in DeviceFacts. Null where the library or the device
// is not there.
void* FindNvmlDevice(const std::string& uuid);

}  // namespace mtmc::worker
