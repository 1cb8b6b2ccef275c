// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/rpc/security.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace mtmc::rpc {

// gRPC's form of what Check() has accepted. Certificates are looked at each second for
// as long as the credentials live. Private to this folder.
std::shared_ptr<grpc::ServerCredentials> MakeCredentials(const ServerSecurity& security);
std::shared_ptr<grpc::ChannelCredentials> MakeCredentials(const ChannelSecurity& security);

}  // namespace mtmc::rpc
