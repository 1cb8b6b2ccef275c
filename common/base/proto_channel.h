// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/message_channel.h"
#include "common/base/status_macros.h"

namespace google::protobuf {
class MessageLite;
}

namespace mtmc::base {

// Sends a protobuf message; fails as MessageChannel::Send.
absl::Status SendProto(MessageChannel& channel, const google::protobuf::MessageLite& message,
                       absl::Time deadline);

// Receives into `message`; use ReceiveProto().
absl::Status ReceiveProtoInto(MessageChannel& channel, google::protobuf::MessageLite& message,
                              absl::Time deadline);

// Receives a message of type T; fails as MessageChannel::Receive, or with
// DATA_LOSS if the bytes do not parse as T.
template <typename T>
absl::StatusOr<T> ReceiveProto(MessageChannel& channel, absl::Time deadline) {
  T message;
  MTMC_RETURN_IF_ERROR(ReceiveProtoInto(channel, message, deadline));
  return message;
}

}  // namespace mtmc::base
