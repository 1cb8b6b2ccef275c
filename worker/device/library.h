// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "kernel/program/program.h"
#include "worker/device/device.h"

namespace mtmc::worker {

// A tensor as a library call sees it: dense, row-major.
struct LibraryOperand {
  void* address = nullptr;
  kernel::TensorType type;
};

// Storage that a library call returned; freed with the value.
class LibraryTensor {
 public:
  virtual ~LibraryTensor() = default;
  virtual const LibraryOperand& operand() const = 0;
};

// Executes the `call` steps of plans in place on a device's memory.
// Thread-compatible, as the device is.
class Library {
 public:
  virtual ~Library() = default;

  using FindOperand = std::function<LibraryOperand(std::string_view tensor)>;

  // Results in the operator's order, made dense; null for an undefined tensor
  // or a result that the call drops. kLibrary on any error of the library.
  virtual Outcome<std::vector<std::unique_ptr<LibraryTensor>>> Call(const kernel::LibraryCall& call,
                                                                    const FindOperand& find) = 0;

  // Whether calls are ordered with the device's launches by themselves. If not,
  // the caller synchronizes the device before a call.
  virtual bool is_stream_ordered() const = 0;

  // Gives memory that the library keeps for later back to the device.
  virtual void Trim() = 0;

  // As Device::Capture, with the library's allocations kept for the graph.
  virtual Outcome<std::unique_ptr<Graph>> Capture(const Body& body) = 0;
};

}  // namespace mtmc::worker
