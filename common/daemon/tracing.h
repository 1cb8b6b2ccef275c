// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/daemon/flags.h"

namespace mtmc::metrics {
class Registry;
}

namespace mtmc::otlp {
class OtlpExporter;
}

namespace mtmc::daemon {

// The traces of a daemon, as its flags say, for as long as this lives:
//
//   metrics::Registry registry("mtmc-policyd");
//   const auto tracing = daemon::Tracing::Start(flags.daemon, "mtmc-policyd", registry);
//   if (!tracing.ok()) return daemon::FailUsage("unusable --otlp-endpoint", tracing.status());
//
// Spans are counted in `mtmc_trace_spans_total{outcome}`: `sent`, or `dropped` because the
// collector was down, slow or refused them; 0 of both where nothing is traced. Destruction
// sends what waits, for a second at most. A resource, one at a time; it ends after all that
// makes spans.
class Tracing {
 public:
  // Traces nothing where there is no endpoint. The service's name is `program`, or what the
  // variable OTEL_SERVICE_NAME says. INVALID_ARGUMENT as OtlpExporter::Create for an
  // endpoint that cannot be one; whether somebody listens there is not looked at. The
  // registry is borrowed.
  static absl::StatusOr<std::unique_ptr<Tracing>> Start(const Flags& flags,
                                                        const std::string& program,
                                                        metrics::Registry& registry);

  ~Tracing();

  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

 private:
  explicit Tracing(std::shared_ptr<otlp::OtlpExporter> exporter);

  // Null where nothing is traced. Spans that are open hold it, too, but it has stopped then.
  const std::shared_ptr<otlp::OtlpExporter> exporter_;
};

}  // namespace mtmc::daemon
