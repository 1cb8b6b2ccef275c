// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/fake_llm_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/check.h"

namespace mtmc::gateway {
namespace {

// Whether headers and body, by its Content-Length, have arrived.
bool IsComplete(const std::string& request) {
  const size_t end = request.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  const std::string headers = absl::AsciiStrToLower(request.substr(0, end));
  const size_t at = headers.find("content-length:");
  size_t length = 0;
  if (at != std::string::npos) {
    const std::string value = headers.substr(at + 15, headers.find("\r\n", at) - at - 15);
    if (!absl::SimpleAtoi(value, &length)) length = 0;
  }
  return request.size() >= end + 4 + length;
}

std::string ReadRequest(int connection) {
  std::string request;
  char bytes[4096];
  while (!IsComplete(request)) {
    const ssize_t count = recv(connection, bytes, sizeof bytes, 0);
    if (count <= 0) break;
    request.append(bytes, static_cast<size_t>(count));
  }
  return request;
}

void SendAll(int connection, const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count = send(connection, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return;
    sent += static_cast<size_t>(count);
  }
}

}  // namespace

struct FakeLlmServer::State {
  // Absent bytes mean that the connection hangs.
  using Script = std::optional<std::string>;

  void Work() {
    while (true) {
      const int connection = accept(listener, nullptr, nullptr);
      if (connection < 0) return;
      std::string request = ReadRequest(connection);
      absl::MutexLock lock(&mu);
      requests.push_back(std::move(request));
      Script script = std::string();
      if (!scripts.empty()) {
        script = std::move(scripts.front());
        scripts.pop_front();
      }
      if (!script) {
        hanging.push_back(connection);
        continue;
      }
      SendAll(connection, *script);
      close(connection);
    }
  }

  int listener = -1;
  int port = 0;
  mutable absl::Mutex mu;
  std::deque<Script> scripts ABSL_GUARDED_BY(mu);
  std::vector<std::string> requests ABSL_GUARDED_BY(mu);
  std::vector<int> hanging ABSL_GUARDED_BY(mu);
  std::jthread thread;
};

FakeLlmServer::FakeLlmServer() : state_(std::make_unique<State>()) {
  state_->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  MTMC_CHECK(bind(state_->listener, generic, length) == 0);
  MTMC_CHECK(listen(state_->listener, 16) == 0);
  MTMC_CHECK(getsockname(state_->listener, generic, &length) == 0);
  state_->port = ntohs(address.sin_port);
  state_->thread = std::jthread([state = state_.get()] { state->Work(); });
}

FakeLlmServer::~FakeLlmServer() {
  shutdown(state_->listener, SHUT_RDWR);
  state_->thread.join();
  close(state_->listener);
  absl::MutexLock lock(&state_->mu);
  for (const int connection : state_->hanging) close(connection);
}

std::string FakeLlmServer::base_url() const {
  return absl::StrCat("http://127.0.0.1:", state_->port, "/v1");
}

void FakeLlmServer::Answer(int status, const std::string& body, const std::string& headers) {
  AnswerBytes(absl::StrCat("HTTP/1.1 ", status,
                           " X\r\nContent-Type: application/json\r\nContent-Length: ", body.size(),
                           "\r\n", headers, "\r\n", body));
}

void FakeLlmServer::AnswerBytes(const std::string& bytes) {
  absl::MutexLock lock(&state_->mu);
  state_->scripts.emplace_back(bytes);
}

void FakeLlmServer::Hang() {
  absl::MutexLock lock(&state_->mu);
  state_->scripts.emplace_back(std::nullopt);
}

std::vector<std::string> FakeLlmServer::requests() const {
  absl::MutexLock lock(&state_->mu);
  return state_->requests;
}

}  // namespace mtmc::gateway
