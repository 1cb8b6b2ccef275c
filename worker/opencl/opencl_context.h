// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/device/device_facts.h"
#include "worker/opencl/opencl_api.h"

namespace mtmc::worker {

// A device, its context and one in-order queue. Immovable: it owns handles.
class OpenClContext {
 public:
  // NOT_FOUND or UNAVAILABLE when there is no such device.
  static absl::StatusOr<std::shared_ptr<const OpenClContext>> Create(int device_index);

  ~OpenClContext();
  OpenClContext(const OpenClContext&) = delete;
  OpenClContext& operator=(const OpenClContext&) = delete;

  const OpenClApi& api() const { return api_; }

  cl_device_id device() const { return device_; }

  cl_context context() const { return context_; }

  cl_command_queue queue() const { return queue_; }

  // The device works on the host's own memory.
  bool is_host() const { return is_host_; }

  // Facts that need no measurement.
  DeviceFacts ReadFacts() const;

 private:
  OpenClContext(const OpenClApi& api, cl_device_id device);

  std::string ReadText(cl_device_info name) const;
  template <typename T>
  T ReadNumber(cl_device_info name) const;

  const OpenClApi& api_;
  const cl_device_id device_;
  bool is_host_ = false;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
};

}  // namespace mtmc::worker
