// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include "common/rpc/channel.h"
#include "mtmc/v1/micro_coding.grpc.pb.h"
#include "server/coordinator/call_set.h"
#include "server/coordinator/clients.h"

namespace mtmc::coordinator {
namespace {

class GatewayClient final : public search::MicroCoder {
 public:
  // The search has its own loop over an outage, which it tells its user of.
  GatewayClient(const std::string& endpoint, const rpc::ChannelSecurity& security,
                absl::Duration timeout)
      : channel_(rpc::MakeChannel(endpoint, {.retries_unavailable = false, .security = security})),
        stub_(v1::MicroCodingService::NewStub(channel_)),
        calls_(timeout) {}

  void CreateProgram(search::Asked<v1::CreateProgramRequest> request,
                     search::Done<v1::CreateProgramResponse> done) override {
    calls_.Start(std::move(request), std::move(done), [this](auto... arguments) {
      stub_->async()->CreateProgram(std::move(arguments)...);
    });
  }

  void ListActions(search::Asked<v1::ListActionsRequest> request,
                   search::Done<v1::ListActionsResponse> done) override {
    calls_.Start(std::move(request), std::move(done), [this](auto... arguments) {
      stub_->async()->ListActions(std::move(arguments)...);
    });
  }

  void ApplyAction(search::Asked<v1::ApplyActionRequest> request,
                   search::Done<v1::ApplyActionResponse> done) override {
    calls_.Start(std::move(request), std::move(done), [this](auto... arguments) {
      stub_->async()->ApplyAction(std::move(arguments)...);
    });
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::MicroCodingService::Stub> stub_;
  // Last, so that it ends first.
  CallSet calls_;
};

}  // namespace

std::unique_ptr<search::MicroCoder> ConnectToGateway(const std::string& endpoint,
                                                     const rpc::ChannelSecurity& security,
                                                     absl::Duration timeout) {
  return std::make_unique<GatewayClient>(endpoint, security, timeout);
}

}  // namespace mtmc::coordinator
