// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/security.h"
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

  // Blocks until the coordinator can be reached, at most until `deadline`; returns
  // whether it can. A lost connection comes back only while somebody waits here or
  // in a call: gRPC's own look at an idle channel is 5 s apart.
  virtual bool AwaitConnection(absl::Time deadline) = 0;

  // Makes a Synchronize that is under way, and the next one, return early. Thread-safe.
  virtual void Interrupt() = 0;

  // Bytes of a blob; waits up to a minute for a coordinator that is restarting.
  // NOT_FOUND when the coordinator has no such blob, DATA_LOSS when what arrived
  // does not hash to the digest.
  virtual absl::StatusOr<std::string> Download(const v1::Digest& digest) = 0;
};

// Over gRPC. `endpoint` is HOST:PORT.
std::unique_ptr<CoordinatorClient> ConnectToCoordinator(const std::string& endpoint,
                                                        const rpc::ChannelSecurity& security = {});

}  // namespace mtmc::worker
