// SPDX-License-Identifier: Apache-2.0
#include "common/daemon/tracing.h"

#include <cstdlib>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/host_name.h"
#include "common/base/id.h"
#include "common/base/status_macros.h"
#include "common/config/version.h"
#include "common/metrics/metrics.h"
#include "common/otlp/otlp_exporter.h"
#include "common/trace/span.h"

namespace mtmc::daemon {
namespace {

// A collector that hangs may delay the end of a daemon by that long.
constexpr absl::Duration kFlushTime = absl::Seconds(1);

std::string ServiceName(const std::string& program) {
  const char* name = std::getenv("OTEL_SERVICE_NAME");
  return name == nullptr || *name == '\0' ? program : name;
}

metrics::Counter CountOf(metrics::Registry& registry, const char* outcome) {
  return registry.MakeCounter("mtmc_trace_spans_total", "Spans of traces, by what became of them.",
                              {{"outcome", outcome}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tracing>> Tracing::Start(const Flags& flags,
                                                        const std::string& program,
                                                        metrics::Registry& registry) {
  const metrics::Counter sent = CountOf(registry, "sent");
  const metrics::Counter dropped = CountOf(registry, "dropped");
  if (flags.otlp_endpoint.empty()) return std::unique_ptr<Tracing>(new Tracing(nullptr));
  const auto count = [](const metrics::Counter& counter) {
    return [counter](std::size_t spans) { counter.Increment(static_cast<double>(spans)); };
  };
  MTMC_ASSIGN_OR_RETURN(
      std::shared_ptr<otlp::OtlpExporter> exporter,
      otlp::OtlpExporter::Create({.endpoint = flags.otlp_endpoint,
                                  .security = ChannelSecurityOf(flags),
                                  .resource = {{"service.name", ServiceName(program)},
                                               {"service.version", std::string(config::Version())},
                                               {"service.instance.id", base::MakeUuid4()},
                                               {"host.name", base::HostName()}},
                                  .on_sent = count(sent),
                                  .on_dropped = count(dropped)}));
  trace::StartTracing(exporter);
  return std::unique_ptr<Tracing>(new Tracing(std::move(exporter)));
}

Tracing::Tracing(std::shared_ptr<otlp::OtlpExporter> exporter) : exporter_(std::move(exporter)) {}

Tracing::~Tracing() {
  if (exporter_ == nullptr) return;
  trace::StopTracing();
  exporter_->Stop(absl::Now() + kFlushTime);
}

}  // namespace mtmc::daemon
