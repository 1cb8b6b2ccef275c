// SPDX-License-Identifier: Apache-2.0
#include "common/base/message_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"

namespace mtmc::base {
namespace {

constexpr std::size_t kHeaderBytes = 4;

void SetNonBlocking(const UniqueFd& fd) {
  if (fd.is_open()) ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

absl::Status AwaitReady(int fd, short events, absl::Time deadline) {
  while (true) {
    const absl::Duration left =
        std::clamp(deadline - absl::Now(), absl::ZeroDuration(), absl::Hours(1));
    pollfd entry{.fd = fd, .events = events, .revents = 0};
    const auto left_ms = absl::ToInt64Milliseconds(left + absl::Microseconds(999));
    if (::poll(&entry, 1, static_cast<int>(left_ms)) > 0) return absl::OkStatus();
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError("peer did not answer in time");
    }
  }
}

// Sockets must not raise SIGPIPE; pipes know no send().
ssize_t WriteSome(int fd, std::string_view bytes) {
  const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (count >= 0 || errno != ENOTSOCK) return count;
  return ::write(fd, bytes.data(), bytes.size());
}

absl::Status WriteAll(int fd, std::string_view bytes, absl::Time deadline) {
  while (!bytes.empty()) {
    const ssize_t count = WriteSome(fd, bytes);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      MTMC_RETURN_IF_ERROR(AwaitReady(fd, POLLOUT, deadline));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return absl::UnavailableError("peer closed the channel");
    } else if (errno != EINTR) {
      return SystemError(errno, "write to the channel");
    }
  }
  return absl::OkStatus();
}

// Appends to `bytes` until it has `wanted`. What was read stays on an error.
absl::Status ReadUntil(int fd, std::string& bytes, std::size_t wanted, absl::Time deadline) {
  // Grown in pieces, so that a length alone reserves no memory.
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  while (bytes.size() < wanted) {
    const std::size_t old_size = bytes.size();
    bytes.resize(std::min(wanted, old_size + kPiece));
    const ssize_t count = ::read(fd, bytes.data() + old_size, bytes.size() - old_size);
    const int error_number = errno;
    bytes.resize(old_size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0 || (count < 0 && error_number == ECONNRESET)) {
      return absl::UnavailableError(bytes.empty() ? "peer closed the channel"
                                                  : "peer closed the channel within a message");
    }
    if (count < 0 && error_number == EAGAIN) {
      MTMC_RETURN_IF_ERROR(AwaitReady(fd, POLLIN, deadline));
    } else if (count < 0 && error_number != EINTR) {
      return SystemError(error_number, "read from the channel");
    }
  }
  return absl::OkStatus();
}

std::string EncodeLength(std::size_t length) {
  std::string header;
  for (std::size_t i = 0; i < kHeaderBytes; ++i) {
    header.push_back(static_cast<char>((length >> (8 * i)) & 0xff));
  }
  return header;
}

std::size_t DecodeLength(std::string_view header) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < kHeaderBytes; ++i) {
    length |= std::size_t{static_cast<unsigned char>(header[i])} << (8 * i);
  }
  return length;
}

absl::Status TooLarge(std::size_t length, std::uint32_t limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat("message of ", length, " bytes, the limit is ", limit));
}

}  // namespace

absl::StatusOr<MessageChannel::Pair> MessageChannel::CreatePair(Options options) {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return SystemError(errno, "make a socket pair");
  }
  return Pair{OverFds(UniqueFd(ends[0]), UniqueFd(), options), UniqueFd(ends[1])};
}

absl::StatusOr<MessageChannel::Pair> MessageChannel::CreatePair() { return CreatePair(Options()); }

MessageChannel MessageChannel::OverFds(UniqueFd read_end, UniqueFd write_end, Options options) {
  return {std::move(read_end), std::move(write_end), options};
}

MessageChannel MessageChannel::OverFds(UniqueFd read_end, UniqueFd write_end) {
  return OverFds(std::move(read_end), std::move(write_end), Options());
}

MessageChannel::MessageChannel(UniqueFd read_end, UniqueFd write_end, Options options)
    : read_end_(std::move(read_end)), write_end_(std::move(write_end)), options_(options) {
  SetNonBlocking(read_end_);
  SetNonBlocking(write_end_);
}

absl::Status MessageChannel::Send(std::string_view message, absl::Time deadline) {
  MTMC_RETURN_IF_ERROR(send_failure_);
  if (message.size() > options_.max_message_bytes) {
    return TooLarge(message.size(), options_.max_message_bytes);
  }
  std::string framed = EncodeLength(message.size());
  framed += message;
  send_failure_ = WriteAll(write_fd(), framed, deadline);
  return send_failure_;
}

absl::StatusOr<std::string> MessageChannel::Receive(absl::Time deadline) {
  MTMC_RETURN_IF_ERROR(receive_failure_);
  absl::Status status = ReadUntil(read_fd(), partial_, kHeaderBytes, deadline);
  if (status.ok()) {
    const std::size_t length = DecodeLength(partial_);
    status = length > options_.max_message_bytes
                 ? TooLarge(length, options_.max_message_bytes)
                 : ReadUntil(read_fd(), partial_, kHeaderBytes + length, deadline);
  }
  if (!status.ok()) {
    if (!absl::IsDeadlineExceeded(status)) receive_failure_ = status;
    return status;
  }
  return std::exchange(partial_, {}).substr(kHeaderBytes);
}

}  // namespace mtmc::base
