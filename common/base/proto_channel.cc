// SPDX-License-Identifier: Apache-2.0
#include "common/base/proto_channel.h"

#include <google/protobuf/message_lite.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace mtmc::base {

absl::Status SendProto(MessageChannel& channel, const google::protobuf::MessageLite& message,
                       absl::Time deadline) {
  std::string bytes;
  // Fails beyond 2 GiB only, Protobuf's own limit.
  if (!message.SerializeToString(&bytes)) {
    return absl::ResourceExhaustedError("message is too large to serialize");
  }
  return channel.Send(bytes, deadline);
}

absl::Status ReceiveProtoInto(MessageChannel& channel, google::protobuf::MessageLite& message,
                              absl::Time deadline) {
  MTMC_ASSIGN_OR_RETURN(const std::string bytes, channel.Receive(deadline));
  if (!message.ParseFromString(bytes)) {
    return absl::DataLossError(
        absl::StrCat("message of ", bytes.size(), " bytes is no ", message.GetTypeName()));
  }
  return absl::OkStatus();
}

}  // namespace mtmc::base
