// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <random>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/rpc/server.h"
#include "mtmc/v1/micro_coding.grpc.pb.h"
#include "server/coordinator/fake_parts.h"
#include "tests/load/pacer.h"

namespace mtmc::load {

// A gateway whose programs cost nothing: lists of the actions that were taken, with as
// many legal actions as a job may need. Tells what a coordinator bears without the
// engine that writes real ones. Serves as long as it lives.
//
// A step is answered after a drawn time of half to one and a half `mean_think`, as a
// language model would: jobs then offer work at a rate of their own, while those of a
// coder that answers at once all wait in the coordinator's queue, whatever it does.
class FreeCoder final : private v1::MicroCodingService::CallbackService {
 public:
  // `address` as of rpc::RpcServer::Options.
  static absl::StatusOr<std::unique_ptr<FreeCoder>> Create(const std::string& address,
                                                           absl::Duration mean_think);

  // Answers what it still thinks about with UNAVAILABLE.
  ~FreeCoder() override;

 private:
  explicit FreeCoder(absl::Duration mean_think) : mean_think_(mean_think) {}

  grpc::ServerUnaryReactor* CreateProgram(grpc::CallbackServerContext* context,
                                          const v1::CreateProgramRequest* request,
                                          v1::CreateProgramResponse* response) override;
  grpc::ServerUnaryReactor* ListActions(grpc::CallbackServerContext* context,
                                        const v1::ListActionsRequest* request,
                                        v1::ListActionsResponse* response) override;
  grpc::ServerUnaryReactor* ApplyAction(grpc::CallbackServerContext* context,
                                        const v1::ApplyActionRequest* request,
                                        v1::ApplyActionResponse* response) override;

  // Finishes `reactor` when its time has come.
  void Think(grpc::ServerUnaryReactor* reactor) ABSL_LOCKS_EXCLUDED(mu_);

  const absl::Duration mean_think_;
  coordinator::FakeCoder coder_;
  absl::Mutex mu_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mu_);
  // Calls that are thought about.
  std::set<grpc::ServerUnaryReactor*> thoughts_ ABSL_GUARDED_BY(mu_);
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  Pacer pacer_;
  // Last: it calls the above until it is gone.
  std::unique_ptr<rpc::RpcServer> server_;
};

}  // namespace mtmc::load
