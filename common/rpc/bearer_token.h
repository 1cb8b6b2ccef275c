// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace grpc::experimental {
class ClientInterceptorFactoryInterface;
}

namespace mtmc::rpc {

// The first line of `file`. INVALID_ARGUMENT with reason TOKEN_FILE_INVALID if there is
// none, or if it is not printable ASCII; the message does not show it.
absl::StatusOr<std::string> ReadBearerToken(const std::string& file);

// Adds the token of `file` to each call of a channel, as `authorization: Bearer ...`,
// unless the call carries one already, as a relayed one does. A token that cannot be
// read is not sent; the server says that it is missing.
std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface> MakeTokenSender(
    std::string file);

}  // namespace mtmc::rpc
