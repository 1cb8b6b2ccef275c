// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/device/compiler.h"
#include "worker/device/device.h"
#include "worker/device/device_event.h"

namespace mtmc::worker {

// A known kernel that tells whether a device still works: every multiprocessor
// does integer and floating-point arithmetic, exchanges values through shared
// memory, and writes results to fresh memory, which must read back bit by bit as
// the host computed them.
//
//   auto canary = Canary::Create(device, compiler, read_events);   // compiles, loads
//   canary->Run().fault.empty();                                   // some milliseconds
//
// Thread-compatible, as the device is.
class Canary {
 public:
  // What the device reported since the last call.
  using ReadEvents = std::function<std::vector<DeviceEvent>()>;

  struct Result {
    // Empty when the device works.
    std::string fault;
    // What it reported meanwhile, a fault or not.
    std::vector<std::string> events;
  };

  // Borrows the device, which must outlive it. Runs the kernel once; INTERNAL when
  // that goes wrong.
  static absl::StatusOr<std::unique_ptr<Canary>> Create(Device& device, Compiler& compiler,
                                                        ReadEvents read_events);

  Result Run();

 private:
  Canary(Device& device, ReadEvents read_events);

  absl::Status Build(Compiler& compiler);
  std::string Compute();
  MaybeFailure Execute(std::vector<uint32_t>& results);

  Device& device_;
  const ReadEvents read_events_;
  const int64_t blocks_;
  std::unique_ptr<Module> module_;
  Kernel* kernel_ = nullptr;
  std::vector<uint32_t> inputs_;
  // Of one block; those of the others differ by a constant.
  std::vector<uint32_t> expected_;
};

}  // namespace mtmc::worker
