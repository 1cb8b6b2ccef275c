// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/rpc/security.h"
#include "common/trace/span.h"

namespace grpc {
class ClientContext;
}

namespace mtmc::otlp {

// Sends spans to an OpenTelemetry collector, with OTLP over gRPC, in batches from a thread
// of its own. A collector that is down or slow costs spans, never time: what
// the queue cannot hold is dropped and counted.
//
// A service: thread-safe, immovable.
class OtlpExporter final : public trace::SpanSink {
 public:
  struct Options {
    // HOST:PORT; or with http:// before it, for a channel without TLS whatever `security`
    // says; or with https://, for one that must have it.
    std::string endpoint;
    // The token is not sent.
    rpc::ChannelSecurity security = {};
    // Attributes of this process, such as service.name.
    std::map<std::string, std::string> resource;
    // Spans that wait. At 0.5 KB each these are 4 MB, and some 100 trials.
    std::size_t max_queued = 8192;
    // Spans of one call; 512 are about a quarter of a megabyte.
    std::size_t max_batch = 512;
    // Longest wait for a batch to fill.
    absl::Duration max_delay = absl::Seconds(1);
    absl::Duration call_timeout = absl::Seconds(5);
    // Wait after a call that failed and may succeed later; doubled each time, and longer where
    // the collector asks for it.
    absl::Duration min_backoff = absl::Milliseconds(500);
    absl::Duration max_backoff = absl::Seconds(30);
    // Hear of spans that arrived, and of those that nobody will see. On any thread; must
    // not block.
    std::function<void(std::size_t)> on_sent = [](std::size_t) {};
    std::function<void(std::size_t)> on_dropped = [](std::size_t) {};
  };

  // Connects when there is something to send. INVALID_ARGUMENT with reason
  // ADDRESS_INVALID for an endpoint that is not one, TLS_INCOMPLETE for one that wants TLS
  // where `security` has none, and what rpc::Check says of `security`.
  static absl::StatusOr<std::unique_ptr<OtlpExporter>> Create(Options options);

  // Stops within a second.
  ~OtlpExporter() override;

  OtlpExporter(const OtlpExporter&) = delete;
  OtlpExporter& operator=(const OtlpExporter&) = delete;

  void Take(trace::SpanRecord span) override ABSL_LOCKS_EXCLUDED(mu_);

  // Sends what waits and takes no more. Returns once all is sent or given up, soon after
  // `deadline` at the latest. May be called again.
  void Stop(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Collector;
  using Batch = std::vector<trace::SpanRecord>;

  explicit OtlpExporter(Options options);

  void Work();
  Batch AwaitBatch() ABSL_LOCKS_EXCLUDED(mu_);
  void Send(const Batch& batch) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Call(const Batch& batch) ABSL_LOCKS_EXCLUDED(mu_);
  // False where nothing more is to be sent.
  bool Pause(absl::Duration wait) ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  const std::unique_ptr<Collector> collector_;

  absl::Mutex mu_;
  std::deque<trace::SpanRecord> queue_ ABSL_GUARDED_BY(mu_);
  absl::Time stop_deadline_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mu_) = false;
  // The call under way, to be cancelled.
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mu_) = nullptr;

  // Last, so that it ends first.
  std::jthread thread_;
};

}  // namespace mtmc::otlp
