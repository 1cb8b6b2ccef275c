// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/unique_fd.h"

namespace mtmc::base {

// Messages between a parent and a child process: each is a length (4 bytes,
// little endian) and that many bytes, over a socket pair or two pipes.
//
//   MTMC_ASSIGN_OR_RETURN(auto pair, MessageChannel::CreatePair());
//   ... start the child with inherited_fds {{pair.child.get(), 3}}, reset it ...
//   MTMC_RETURN_IF_ERROR(pair.channel.Send(request, deadline));
//   MTMC_ASSIGN_OR_RETURN(std::string reply, pair.channel.Receive(deadline));
//
// Move-only: it owns the descriptors. Thread-compatible; one thread may send
// while another receives.
//
// Failures: DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED (message over the limit),
// UNAVAILABLE (the peer closed or died). A Receive whose deadline passes may be
// called again and goes on where it stopped. After any other failure, or a Send
// cut off in the middle, the channel is broken and says so from then on: kill
// the peer.
class MessageChannel {
 public:
  struct Options {
    // Refused beyond, both ways, before memory is taken. 64 MiB holds the
    // largest compiled program and profile; tensors travel as files.
    std::uint32_t max_message_bytes = std::uint32_t{64} << 20;
  };

  struct Pair;

  // A channel over a new socket pair, with the end for the child.
  static absl::StatusOr<Pair> CreatePair(Options options);
  static absl::StatusOr<Pair> CreatePair();

  // Over descriptors of our own, which are switched to non-blocking. For one
  // socket pass it as `read_end` and leave `write_end` closed. SIGPIPE must be
  // ignored for pipes (sockets do not raise it).
  static MessageChannel OverFds(UniqueFd read_end, UniqueFd write_end, Options options);
  static MessageChannel OverFds(UniqueFd read_end, UniqueFd write_end = UniqueFd());

  absl::Status Send(std::string_view message, absl::Time deadline);

  absl::StatusOr<std::string> Receive(absl::Time deadline);

  // Readable when a message, or the end of the stream, may be there; for poll().
  int read_fd() const { return read_end_.get(); }

 private:
  MessageChannel(UniqueFd read_end, UniqueFd write_end, Options options);

  int write_fd() const { return write_end_.is_open() ? write_end_.get() : read_end_.get(); }

  UniqueFd read_end_;
  UniqueFd write_end_;
  Options options_;
  // Bytes of a message that is not complete yet: header, then body.
  std::string partial_;
  absl::Status send_failure_;
  absl::Status receive_failure_;
};

struct MessageChannel::Pair {
  MessageChannel channel;
  UniqueFd child;
};

}  // namespace mtmc::base
