// SPDX-License-Identifier: Apache-2.0
#include "common/base/message_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "common/testing/status_matchers.h"

namespace mtmc::base {
namespace {

using testing::IsOk;
using testing::StatusIs;

absl::Time Soon() { return absl::Now() + absl::Seconds(10); }

// Two channels that talk to each other.
struct Wire {
  MessageChannel a;
  MessageChannel b;
};

Wire MakeWire(MessageChannel::Options options = {}) {
  auto pair = MessageChannel::CreatePair(options);
  REQUIRE_THAT(pair.status(), IsOk());
  return {std::move(pair->channel),
          MessageChannel::OverFds(std::move(pair->child), UniqueFd(), options)};
}

TEST_CASE("Messages arrive whole and in order", "[base]") {
  Wire wire = MakeWire();
  REQUIRE_THAT(wire.a.Send("first", Soon()), IsOk());
  REQUIRE_THAT(wire.a.Send("", Soon()), IsOk());
  REQUIRE_THAT(wire.a.Send("third", Soon()), IsOk());

  CHECK(wire.b.Receive(Soon()).value() == "first");
  CHECK(wire.b.Receive(Soon()).value().empty());
  CHECK(wire.b.Receive(Soon()).value() == "third");
}

TEST_CASE("A message larger than the socket buffer arrives while it is sent", "[base]") {
  Wire wire = MakeWire();
  const std::string large(std::size_t{8} << 20, 'x');
  absl::Status sent;
  std::thread sender([&] { sent = wire.a.Send(large, Soon()); });

  const auto received = wire.b.Receive(Soon());

  sender.join();
  CHECK_THAT(sent, IsOk());
  REQUIRE_THAT(received.status(), IsOk());
  CHECK(*received == large);
}

TEST_CASE("A receive goes on after its deadline passed", "[base]") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  MessageChannel channel = MessageChannel::OverFds(UniqueFd(ends[0]));
  const UniqueFd peer(ends[1]);
  REQUIRE(::write(peer.get(), "\5\0\0\0he", 6) == 6);

  CHECK_THAT(channel.Receive(absl::Now()).status(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  REQUIRE(::write(peer.get(), "llo", 3) == 3);

  CHECK(channel.Receive(Soon()).value() == "hello");
}

TEST_CASE("A peer that closed is UNAVAILABLE", "[base]") {
  Wire wire = MakeWire();
  { const MessageChannel closed = std::move(wire.b); }

  CHECK_THAT(wire.a.Receive(Soon()).status(), StatusIs(absl::StatusCode::kUnavailable));
  CHECK_THAT(wire.a.Send("x", Soon()), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_CASE("A peer that dies within a message is told apart", "[base]") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  MessageChannel channel = MessageChannel::OverFds(UniqueFd(ends[0]));
  REQUIRE(::write(ends[1], "\5\0\0\0he", 6) == 6);
  ::close(ends[1]);

  CHECK_THAT(channel.Receive(Soon()).status(),
             StatusIs(absl::StatusCode::kUnavailable, "within a message"));
}

TEST_CASE("A message over the limit breaks the receiver before memory is taken", "[base]") {
  Wire wire = MakeWire({.max_message_bytes = 10});
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  MessageChannel receiver =
      MessageChannel::OverFds(UniqueFd(ends[0]), UniqueFd(), {.max_message_bytes = 10});
  REQUIRE(::write(ends[1], "\377\377\377\377", 4) == 4);

  CHECK_THAT(wire.a.Send("eleven byte", Soon()), StatusIs(absl::StatusCode::kResourceExhausted));
  CHECK_THAT(receiver.Receive(Soon()).status(), StatusIs(absl::StatusCode::kResourceExhausted));
  CHECK_THAT(receiver.Receive(Soon()).status(), StatusIs(absl::StatusCode::kResourceExhausted));
  ::close(ends[1]);
}

TEST_CASE("A send that is cut off breaks the channel", "[base]") {
  Wire wire = MakeWire();
  const std::string large(std::size_t{8} << 20, 'x');

  CHECK_THAT(wire.a.Send(large, absl::Now()), StatusIs(absl::StatusCode::kDeadlineExceeded));
  CHECK_THAT(wire.a.Send("x", Soon()), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

}  // namespace
}  // namespace mtmc::base
