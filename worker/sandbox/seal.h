// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mtmc::worker {

// What a runner still needs once its device is open.
enum class SealedDevice {
  // A GPU: no processes, no sockets, no changes of the file system.
  kCuda,
  // PoCL links each kernel with `ld` at its first launch and keeps the result in
  // its cache: processes and files in its own folders stay.
  kHost,
};

// Takes from this process, for good and in all of its threads, what running a
// candidate does not need: sockets, exec, fork, ptrace, signals to others,
// mounts, and (kCuda) unlink and kin. `open` stays, because NVRTC and CUPTI open
// files late: which ones is up to the mount namespace and Landlock; threads stay
// too. Call it after the device's context exists.
//
// The names of what was put on, such as `seal.seccomp`; UNAVAILABLE when the
// kernel refuses filters.
absl::StatusOr<std::vector<std::string>> Seal(SealedDevice device);

// The daemon's own part of the bargain, in its first lines: no new privileges,
// no core dumps, and its memory closed to processes of the same user. The names
// of what is in force.
std::vector<std::string> HardenDaemon();

}  // namespace mtmc::worker
