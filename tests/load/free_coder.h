// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/server.h"
#include "mtmc/v1/micro_coding.grpc.pb.h"
#include "server/coordinator/fake_parts.h"

namespace mtmc::load {

// A gateway whose programs cost nothing: lists of the actions that were taken, with as
// many legal actions as a job may need. Tells what a coordinator bears without the
// engine that writes real ones. Serves as long as it lives.
class FreeCoder final : private v1::MicroCodingService::CallbackService {
 public:
  // `address` as of rpc::RpcServer::Options.
  static absl::StatusOr<std::unique_ptr<FreeCoder>> Create(const std::string& address);

 private:
  grpc::ServerUnaryReactor* CreateProgram(grpc::CallbackServerContext* context,
                                          const v1::CreateProgramRequest* request,
                                          v1::CreateProgramResponse* response) override;
  grpc::ServerUnaryReactor* ListActions(grpc::CallbackServerContext* context,
                                        const v1::ListActionsRequest* request,
                                        v1::ListActionsResponse* response) override;
  grpc::ServerUnaryReactor* ApplyAction(grpc::CallbackServerContext* context,
                                        const v1::ApplyActionRequest* request,
                                        v1::ApplyActionResponse* response) override;

  coordinator::FakeCoder coder_;
  // Last: it calls the above until it is gone.
  std::unique_ptr<rpc::RpcServer> server_;
};

}  // namespace mtmc::load
