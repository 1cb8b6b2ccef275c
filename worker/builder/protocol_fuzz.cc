// SPDX-License-Identifier: Apache-2.0

// A child may write any bytes into its channel: what comes out are messages or
// one clean error, and a message that comes out can be sent on. The first byte
// chooses the type that the other end expects.

#include <google/protobuf/stubs/logging.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/time/clock.h"
#include "common/base/message_channel.h"
#include "common/base/proto_channel.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "mtmc/pipe/v1/runner.pb.h"

namespace {

using mtmc::base::MessageChannel;

// Longer messages are refused, so that a length alone costs no memory. The other
// end reads after all is written: inputs fit into a socket's buffer.
constexpr MessageChannel::Options kOptions{.max_message_bytes = 1 << 14};
constexpr std::size_t kMaxBytes = 1 << 14;

template <typename Message>
void SendOn(const Message& message) {
  auto pair = MessageChannel::CreatePair();
  if (!pair.ok()) std::abort();
  MessageChannel other = MessageChannel::OverFds(std::move(pair->child));
  const absl::Time deadline = absl::InfiniteFuture();
  if (!mtmc::base::SendProto(pair->channel, message, deadline).ok()) std::abort();
  const auto again = mtmc::base::ReceiveProto<Message>(other, deadline);
  if (!again.ok() || again->ByteSizeLong() != message.ByteSizeLong()) std::abort();
}

template <typename Message>
void ReceiveAll(MessageChannel& channel) {
  while (true) {
    const auto message = mtmc::base::ReceiveProto<Message>(channel, absl::InfiniteFuture());
    if (message.ok()) {
      SendOn(*message);
    } else if (!absl::IsDataLoss(message.status())) {
      // The end of the stream, or a channel that is broken for good.
      if (channel.Receive(absl::InfiniteFuture()).ok()) std::abort();
      return;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mtmc;
  // Protobuf tells of each string that is not UTF-8.
  static auto* const logged = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(logged);
  if (size == 0 || size > kMaxBytes) return 0;
  auto pair = MessageChannel::CreatePair(kOptions);
  if (!pair.ok()) std::abort();
  if (::write(pair->child.get(), data + 1, size - 1) != static_cast<ssize_t>(size - 1)) {
    std::abort();
  }
  pair->child.reset();
  switch (data[0] % 4) {
    case 0:
      ReceiveAll<pipe::v1::RunnerResponse>(pair->channel);
      break;
    case 1:
      ReceiveAll<pipe::v1::BuilderResponse>(pair->channel);
      break;
    case 2:
      ReceiveAll<pipe::v1::RunnerRequest>(pair->channel);
      break;
    default:
      ReceiveAll<pipe::v1::BuilderRequest>(pair->channel);
  }
  return 0;
}
