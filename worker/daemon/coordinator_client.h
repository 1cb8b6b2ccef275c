// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::worker {

// The worker's view of the coordinator. An interface, so that the lease loop is
// tested without a network.
class CoordinatorClient {
 public:
  virtual ~CoordinatorClient() = default;

  // Exchanges states; blocks up to `timeout`. UNAVAILABLE and DEADLINE_EXCEEDED
  // mean: call again with the same state. FAILED_PRECONDITION means: exit.
  virtual absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request,
                                                              absl::Duration timeout) = 0;

  // Makes a Synchronize that is under way, and the next one, return early. Thread-safe.
  virtual void Interrupt() = 0;

  // Bytes of a blob. NOT_FOUND when the coordinator has no such blob, DATA_LOSS
  // when what arrived does not hash to the digest.
  virtual absl::StatusOr<std::string> Download(const v1::Digest& digest) = 0;
};

// Over gRPC. `endpoint` is HOST:PORT.
std::unique_ptr<CoordinatorClient> ConnectToCoordinator(const std::string& endpoint);

}  // namespace mtmc::worker
