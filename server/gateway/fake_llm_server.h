// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace mtmc::gateway {

// An HTTP server for tests on a free loopback port: answers each connection
// with the next scripted bytes, whatever it asks. Immovable; thread-safe.
class FakeLlmServer {
 public:
  FakeLlmServer();
  ~FakeLlmServer();

  // `http://127.0.0.1:PORT/v1`.
  std::string base_url() const;

  // The next connection gets `status`, `headers` (each ended by CRLF) and `body`.
  void Answer(int status, const std::string& body, const std::string& headers = "");
  // The next connection gets these bytes and is closed.
  void AnswerBytes(const std::string& bytes);
  // The next connection gets nothing until the server is destroyed.
  void Hang();

  // Every request so far, headers and body.
  std::vector<std::string> requests() const;

 private:
  struct State;

  std::unique_ptr<State> state_;
};

}  // namespace mtmc::gateway
