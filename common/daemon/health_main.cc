// SPDX-License-Identifier: Apache-2.0
//
// mtmc-health [ADDRESS [PATH]]: asks a daemon whether it lives, for images that have
// nothing else to ask with. Exits with 0 if http://ADDRESS/PATH answers 200 within five
// seconds, with 1 and the answer if not. ADDRESS is HOST:PORT in numbers or the
// variable MTMC_HEALTH, PATH is /healthz or, for whether the daemon can serve, /readyz.
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/unique_fd.h"

namespace mtmc::daemon {
namespace {

constexpr int kTimeoutSeconds = 5;
constexpr size_t kMostBytes = 1 << 16;

base::UniqueFd Connect(const std::string& host, const std::string& port) {
  addrinfo wanted{};
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) return {};
  base::UniqueFd socket(::socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0));
  // Also the longest wait for the connection.
  const timeval timeout{.tv_sec = kTimeoutSeconds, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  const bool is_connected = ::connect(socket.get(), found->ai_addr, found->ai_addrlen) == 0;
  ::freeaddrinfo(found);
  return is_connected ? std::move(socket) : base::UniqueFd();
}

// All that the daemon answers to a GET; empty if it does not.
std::string Ask(int socket, const std::string& host, const std::string& path) {
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n";
  if (::send(socket, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return "";
  }
  std::string answer;
  char part[4096];
  ssize_t size = 0;
  while (answer.size() < kMostBytes && (size = ::recv(socket, part, sizeof(part), 0)) > 0) {
    answer.append(part, static_cast<size_t>(size));
  }
  return answer;
}

int Main(int argc, char** argv) {
  const char* variable = std::getenv("MTMC_HEALTH");
  const std::string address = argc > 1 ? argv[1] : variable != nullptr ? variable : "";
  const std::string path = argc > 2 ? argv[2] : "/healthz";
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || argc > 3 || !path.starts_with('/')) {
    std::cerr << "usage: mtmc-health HOST:PORT [/healthz|/readyz]\n";
    return 2;
  }
  const base::UniqueFd socket = Connect(address.substr(0, colon), address.substr(colon + 1));
  if (socket.get() < 0) {
    std::cerr << "mtmc-health: nothing answers at " << address << "\n";
    return 1;
  }
  const std::string answer = Ask(socket.get(), address, path);
  const size_t body = answer.find("\r\n\r\n");
  std::cout << (body == std::string::npos ? std::string_view("no answer\n")
                                          : std::string_view(answer).substr(body + 4));
  return answer.starts_with("HTTP/1.1 200 ") ? 0 : 1;
}

}  // namespace
}  // namespace mtmc::daemon

int main(int argc, char** argv) { return mtmc::daemon::Main(argc, argv); }
