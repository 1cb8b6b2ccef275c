// SPDX-License-Identifier: Apache-2.0
#include "common/testing/socket_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>

namespace mtmc::testing {

base::UniqueFd Connect(int port) {
  base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
          0);
  return socket;
}

void SendAll(const base::UniqueFd& socket, const std::string& text) {
  REQUIRE(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(text.size()));
}

std::string ReadAll(const base::UniqueFd& socket) {
  std::string reply;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t count = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (count <= 0) return reply;
    reply.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

std::string Exchange(int port, const std::string& request) {
  const base::UniqueFd socket = Connect(port);
  SendAll(socket, request);
  return ReadAll(socket);
}

std::string HttpGet(int port, const std::string& path) {
  return Exchange(port, "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
}

}  // namespace mtmc::testing
