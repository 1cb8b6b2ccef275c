// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace mtmc::pipe::v1 {
class BuilderRequest;
class BuilderResponse;
class ReferenceRequest;
class ReferenceResponse;
class RunnerRequest;
class RunnerResponse;
}  // namespace mtmc::pipe::v1

namespace mtmc::worker {

// How a call to a child process ended. A value: a child that dies or hangs is an
// expected outcome, and its caller decides whose fault it is.
template <typename Response>
struct Reply {
  enum class Ending {
    kAnswered,     // `response` is set
    kDied,         // the process ended by itself; `detail` says how
    kKilled,       // it was killed by another than the worker: nobody's fault
    kOutOfMemory,  // it was killed because it took more of the host's memory than it may
    kTimedOut,     // it was killed because the deadline passed
    kCancelled,    // it was killed because the work was called off
    kUnavailable,  // no process works, the device's canary fails: not the request's fault
  };
  Ending ending = Ending::kDied;
  Response response;
  // Signal or exit code and the last lines the child printed, at most 64 KiB.
  std::string detail;
  // Number of the process that answered, which no other has; 0 where it does not matter.
  int64_t process = 0;

  bool is_answered() const { return ending == Ending::kAnswered; }
};

// One of the worker's child processes, each with its own rights: the reference
// runs the user's Python, the builder compiles text, the runner executes device
// code. A call after a death starts a new process.
//
// Call blocks until the answer, the death of the child or `timeout`.
// Thread-compatible.
template <typename Request, typename Response>
class Party {
 public:
  virtual ~Party() = default;
  virtual Reply<Response> Call(const Request& request, absl::Duration timeout) = 0;
};

using BuilderParty = Party<pipe::v1::BuilderRequest, pipe::v1::BuilderResponse>;
using ReferenceParty = Party<pipe::v1::ReferenceRequest, pipe::v1::ReferenceResponse>;
using RunnerParty = Party<pipe::v1::RunnerRequest, pipe::v1::RunnerResponse>;

}  // namespace mtmc::worker
