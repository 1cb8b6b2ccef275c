// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/metrics/metrics.h"
#include "server/s3/settings.h"

namespace mtmc::s3 {

// One request for the bucket. A value.
struct Request {
  std::string method;
  // Below the bucket; empty is the bucket itself. Of letters, digits and `-._/`.
  std::string key = {};
  // By name, as they are signed; escaped by the client.
  std::map<std::string, std::string> query = {};
  std::vector<std::string> headers = {};
  // Borrowed until Send() returns.
  std::string_view body = {};
  // Of `body`; the server checks it. Empty is made from `body`.
  std::string sha256 = {};
};

struct Response {
  int status = 0;
  // Names in lower case.
  std::map<std::string, std::string> headers;
  std::string body;
};

struct CurlLibrary;

// Signs requests and sends them over HTTP, on connections that are kept, again where that
// may help: when there is no connection, it breaks or stalls, or the server is busy or fails.
//
// Send() gives a Response for 2xx, 404, 412 and 416. Else
//   UNAVAILABLE, reason S3_UNAVAILABLE: no answer, or one that asks to come again;
//   UNAVAILABLE, reason S3_REFUSED: the key is wrong or may not do this;
//   FAILED_PRECONDITION, reason S3_MISCONFIGURED: no such bucket, another region;
//   RESOURCE_EXHAUSTED, reason DISK_FULL.
// No error, log or metric has a key, a token or a signature.
//
// A service: thread-safe. Send() blocks for `total` and one attempt at most.
class Client {
 public:
  struct Options {
    absl::Duration connect_timeout = absl::Seconds(3);
    // Without a byte in either direction.
    absl::Duration stall_timeout = absl::Seconds(10);
    // Of one attempt: 8 MiB at 300 KB/s.
    absl::Duration attempt_timeout = absl::Seconds(30);
    // After which no other attempt is begun, and how long the first pause is.
    absl::Duration total = absl::Seconds(20);
    absl::Duration first_pause = absl::Milliseconds(100);
    int max_attempts = 6;
    // Where the credentials come from.
    Environment environment = GetEnvironment;
  };

  // As OpenCurl(). The registry is borrowed.
  static absl::StatusOr<std::unique_ptr<Client>> Create(Settings settings, const Options& options,
                                                        metrics::Registry& registry);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  absl::StatusOr<Response> Send(const Request& request) ABSL_LOCKS_EXCLUDED(mu_);

  // Ends what waits, within a second; later requests are UNAVAILABLE at once.
  void Interrupt();

  const Settings& settings() const { return settings_; }

 private:
  Client(Settings settings, const Options& options, const CurlLibrary& curl,
         metrics::Registry& registry);

  // One attempt; `pause` is what the server asks for.
  absl::StatusOr<Response> Attempt(const Request& request, absl::Duration& pause)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<Response> Perform(void* handle, const Request& request,
                                   const Credentials& credentials);
  void SetAway(const absl::Status& status);
  void Count(const Request& request, const std::string& code, absl::Duration duration);
  // False once interrupted.
  bool Pause(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mu_);
  void* Borrow() ABSL_LOCKS_EXCLUDED(mu_);
  void Return(void* handle) ABSL_LOCKS_EXCLUDED(mu_);

  const Settings settings_;
  const Options options_;
  const CurlLibrary& curl_;
  metrics::Registry& registry_;
  std::atomic<bool> is_interrupted_ = false;
  // The newest request found the server away: then one attempt must do.
  std::atomic<bool> is_away_ = false;
  absl::Mutex mu_;
  // With their connections.
  std::vector<void*> idle_ ABSL_GUARDED_BY(mu_);
  std::mt19937_64 random_ ABSL_GUARDED_BY(mu_){std::random_device{}()};
};

}  // namespace mtmc::s3
