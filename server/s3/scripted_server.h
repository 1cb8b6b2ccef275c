// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/unique_fd.h"

namespace mtmc::s3 {

// A server on loopback that answers each connection with the next of some texts, whatever
// it is asked, and then closes it; for tests of how a client takes bad answers. The last
// text is for all that come later. Thread-safe.
class ScriptedServer {
 public:
  // Instead of an answer, nothing, on an open connection.
  static constexpr char kSilence[] = "\1";

  ScriptedServer();
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  // `http://127.0.0.1:PORT`
  std::string address() const;

  void Play(std::vector<std::string> answers) ABSL_LOCKS_EXCLUDED(mu_);

  // The first request that came, as far as its head.
  std::string AwaitRequest() ABSL_LOCKS_EXCLUDED(mu_);

  // Takes no connections any more.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Serve() ABSL_LOCKS_EXCLUDED(mu_);

  base::UniqueFd listener_;
  int port_ = 0;
  absl::Mutex mu_;
  std::vector<std::string> answers_ ABSL_GUARDED_BY(mu_);
  size_t next_ ABSL_GUARDED_BY(mu_) = 0;
  std::string request_ ABSL_GUARDED_BY(mu_);
  std::vector<base::UniqueFd> silent_ ABSL_GUARDED_BY(mu_);
  std::jthread thread_;
};

}  // namespace mtmc::s3
