// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/cgroup.h"

namespace mtmc::worker {

// What a host and the environment of this process say of themselves, unjudged; what
// FindTraps() judges. A value.
struct HostFacts {
  // Of /proc/self/mounts.
  std::string mounts;
  std::string temporary_folder = "/tmp";

  // Files /dev/nvidia0 and on.
  int num_gpus = 0;
  // Parts that MIG has made of them.
  int num_gpu_slices = 0;
  // Whether the control pipe of MPS is there.
  bool has_mps = false;
  // CUDA_VISIBLE_DEVICES.
  std::optional<std::string> visible_gpus;
  // Whether Slurm started this process.
  bool is_slurm_job = false;

  // Of the machine.
  int64_t memory_bytes = 0;
  // That this process may run on.
  int num_cores = 0;
  base::CgroupLimits limits;
  uint64_t max_open_files = 0;

  // MTMC_STORE and MTMC_ARTIFACTS, which a coordinator reads; and the libraries for them.
  std::string store;
  std::string artifacts;
  bool has_libpq = false;
  bool has_libcurl = false;
};

// Of this host and process. Reads small files; blocks for milliseconds.
HostFacts ReadHostFacts();

}  // namespace mtmc::worker
