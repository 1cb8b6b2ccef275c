// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernel/program/program.h"
#include "worker/builder/tool_paths.h"
#include "worker/device/compiler.h"
#include "worker/device/device.h"
#include "worker/device/library.h"
#include "worker/runner/canary.h"

namespace mtmc::worker {

// An opened device with what belongs to it.
struct Backend {
  std::unique_ptr<Device> device;
  // Destroyed before the device, as is the library.
  std::unique_ptr<Canary> canary;
  // Null when library calls are off.
  std::unique_ptr<Library> library;
  // Facts with everything that was asked to be measured.
  DeviceFacts facts;
  // Whether counters can be read, and if not why.
  std::string counters;
};

struct BackendOptions {
  kernel::Dialect dialect = kernel::Dialect::kOpenCl;
  int device_index = 0;
  // Path of the ATen plug-in; empty leaves library calls out.
  std::string aten_plugin;
  // Measures bandwidth and rates: half a second to two.
  bool measures_rates = false;
  ToolPaths tools;
};

// NOT_FOUND or UNAVAILABLE when the device, its driver or its compiler is not
// there. A plug-in that cannot be opened is logged and left out.
absl::StatusOr<Backend> OpenBackend(const BackendOptions& options);

}  // namespace mtmc::worker
