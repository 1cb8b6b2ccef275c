// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/relay.h"

#include "common/rpc/channel.h"
#include "common/rpc/error.h"

namespace mtmc::coordinator {
namespace {

// In the metadata of a call that comes from another coordinator.
constexpr char kRelayed[] = "x-mtmc-relayed";
// Who calls, and what it may do, is for the owner to judge as well.
constexpr char kAuthorization[] = "authorization";

absl::Status NoOwner() {
  return rpc::MakeError(absl::StatusCode::kUnavailable, "NO_OWNER",
                        "no coordinator owns the jobs at this moment; call again");
}

}  // namespace

Relay::Relay(const Seat& seat, rpc::ChannelSecurity security)
    : seat_(seat),
      security_(std::move(security)),
      executor_({.name = "mtmc-relay", .num_threads = 8}) {}

absl::StatusOr<std::shared_ptr<grpc::Channel>> Relay::ChannelFor(
    const grpc::CallbackServerContext& context) {
  const std::string address = seat_.remote();
  // Two that take each other for the owner must not send a call back and forth.
  if (address.empty() || context.client_metadata().count(kRelayed) > 0) return NoOwner();
  absl::MutexLock lock(&mu_);
  if (address != address_ || channel_ == nullptr) {
    channel_ = rpc::MakeChannel(address, {.retries_unavailable = false, .security = security_});
    address_ = address;
  }
  return channel_;
}

void Relay::Prepare(const grpc::CallbackServerContext& from, grpc::ClientContext& to) {
  to.AddMetadata(kRelayed, "1");
  const auto [begin, end] = from.client_metadata().equal_range(kAuthorization);
  for (auto it = begin; it != end; ++it) {
    to.AddMetadata(kAuthorization, std::string(it->second.data(), it->second.size()));
  }
}

bool Relay::IsBetweenOwners(const absl::Status& status, bool is_local) {
  if (!absl::IsUnavailable(status)) return false;
  const std::string reason = rpc::ErrorReason(status);
  if (is_local) return reason == "NOT_OWNER";
  // Without a reason it is gRPC's: the owner cannot be reached.
  return reason.empty() || reason == "NO_OWNER" || reason == "NOT_OWNER" ||
         reason == "SHUTTING_DOWN";
}

}  // namespace mtmc::coordinator
