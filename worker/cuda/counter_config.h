// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/profile/metric_table.h"
#include "worker/cuda/cupti_api.h"

namespace mtmc::worker {

// Which counters are collected, and how they are spread over passes: the part of
// CUPTI's range profiler that needs no device. Immovable: it owns a handle.
// Thread-compatible.
class CounterConfig {
 public:
  struct Options {
    // As CUPTI names the chip, such as `GH100`.
    std::string chip;
    // What the driver said of the device; empty assumes that all is there.
    std::vector<uint8_t> availability;
    std::vector<std::string> counters;
  };

  // Counters that the chip lacks are left out. UNAVAILABLE when none is left or
  // the chip is unknown.
  static absl::StatusOr<std::unique_ptr<CounterConfig>> Create(const CuptiApi& api,
                                                               Options options);

  ~CounterConfig();
  CounterConfig(const CounterConfig&) = delete;
  CounterConfig& operator=(const CounterConfig&) = delete;

  // What the device is programmed with.
  std::span<const uint8_t> image() const { return image_; }

  // Names of the counters, for CUPTI's calls.
  const std::vector<const char*>& names() const { return names_; }

  // Asked for, but not to be had on this chip.
  const std::vector<std::string>& missing() const { return missing_; }

  // Executions that it takes to collect them all.
  int passes() const { return passes_; }

  // Values of one range of decoded data.
  absl::StatusOr<profile::Values> Evaluate(std::span<const uint8_t> data, size_t range) const;

 private:
  CounterConfig(const CuptiApi& api, Options options);

  absl::StatusOr<CUpti_Profiler_Host_Object*> CreateHost() const;
  absl::Status Add(CUpti_Profiler_Host_Object* host, std::span<const char* const> names) const;
  void Destroy(CUpti_Profiler_Host_Object* host) const;
  absl::Status DropMissing();
  absl::Status MakeImage();

  const CuptiApi& api_;
  const Options options_;
  CUpti_Profiler_Host_Object* host_ = nullptr;
  std::vector<const char*> names_;
  std::vector<std::string> missing_;
  std::vector<uint8_t> image_;
  int passes_ = 0;
};

}  // namespace mtmc::worker
