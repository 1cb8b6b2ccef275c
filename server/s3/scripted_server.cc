// SPDX-License-Identifier: Apache-2.0
#include "server/s3/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mtmc::s3 {

ScriptedServer::ScriptedServer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(bind(listener_.get(), any, size) == 0);
  REQUIRE(getsockname(listener_.get(), any, &size) == 0);
  REQUIRE(listen(listener_.get(), 16) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this] { Serve(); });
}

ScriptedServer::~ScriptedServer() { Stop(); }

std::string ScriptedServer::address() const { return absl::StrCat("http://127.0.0.1:", port_); }

void ScriptedServer::Play(std::vector<std::string> answers) {
  const absl::MutexLock lock(&mu_);
  answers_ = std::move(answers);
  next_ = 0;
}

std::string ScriptedServer::AwaitRequest() {
  const absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(
      +[](std::string* request) { return !request->empty(); }, &request_));
  return request_;
}

void ScriptedServer::Stop() {
  if (!thread_.joinable()) return;
  shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
  listener_.reset();
}

void ScriptedServer::Serve() {
  while (true) {
    base::UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.get() < 0) return;
    std::string head;
    std::array<char, 4096> buffer;
    while (head.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = read(connection.get(), buffer.data(), buffer.size());
      if (got <= 0) break;
      head.append(buffer.data(), static_cast<size_t>(got));
    }
    std::string answer;
    {
      const absl::MutexLock lock(&mu_);
      if (request_.empty()) request_ = head;
      if (!answers_.empty()) answer = answers_[std::min(next_++, answers_.size() - 1)];
      if (answer == kSilence) {
        silent_.push_back(std::move(connection));
        continue;
      }
    }
    std::string_view rest = answer;
    while (!rest.empty()) {
      const ssize_t sent = send(connection.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;
      rest.remove_prefix(static_cast<size_t>(sent));
    }
    // A close with unread bytes would reset the connection and lose the answer.
    shutdown(connection.get(), SHUT_WR);
    while (read(connection.get(), buffer.data(), buffer.size()) > 0) {
    }
  }
}

}  // namespace mtmc::s3
