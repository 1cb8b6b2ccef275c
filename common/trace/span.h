// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/base/trace_context.h"

namespace mtmc::trace {

// Who does the work of a span: this process for itself, for whoever asked it, or another
// process that it asks.
enum class SpanKind { kInternal, kServer, kClient };

using AttributeValue = std::variant<std::string, int64_t, double, bool>;

// A span that has ended. A value.
struct SpanRecord {
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  base::TraceContext context;
  // Zero for the root of a trace.
  std::array<uint8_t, 8> parent_span_id = {};
  absl::Time start;
  absl::Time end;
  std::vector<std::pair<std::string, AttributeValue>> attributes;
  // Why the work failed; absent if it did not.
  std::optional<std::string> error;
};

// Where spans go that have ended. Thread-safe; Take does not block.
class SpanSink {
 public:
  virtual ~SpanSink() = default;

  virtual void Take(SpanRecord span) = 0;
};

// From now on spans are made, and go to `sink`. One for the process, as its log is.
void StartTracing(std::shared_ptr<SpanSink> sink);

// No more spans are made; those that are open still go to their sink.
void StopTracing();

// Whether spans are made. One relaxed load.
bool IsTracing();

struct SpanOptions {
  SpanKind kind = SpanKind::kInternal;
  base::TraceContext parent = base::CurrentTrace();
};

// A piece of work in a trace, from the start to End() or destruction:
//
//   trace::Span span = trace::Span::Start("build");
//   const base::TraceScope scope(span.context());   // what follows are its children
//   span.Set("mtmc.job", job);
//
// Inert, and as cheap as a null pointer, while nothing is traced, or where the parent is
// not in a trace that is kept. What is set on an inert span is lost.
//
// Move-only; thread-compatible, and may end on another thread than it began on.
class Span {
 public:
  // Inert.
  Span();
  ~Span();
  Span(Span&& other) noexcept;
  Span& operator=(Span&& other) noexcept;

  // A part of the work of `options.parent`. Names come from a small fixed set; what
  // differs from one to the next is an attribute.
  static Span Start(std::string_view name, const SpanOptions& options = SpanOptions());

  // The first span of a new trace.
  static Span StartTrace(std::string_view name);

  bool is_recording() const { return state_ != nullptr; }

  // To hand on; not valid while inert.
  const base::TraceContext& context() const;

  // A name that was not known at the start.
  void Rename(std::string_view name);

  // `key` is set once; the value tells nothing that is secret.
  void Set(std::string_view key, AttributeValue value);

  // The work failed; `why` is for people.
  void Fail(std::string_view why);

  // Hands the span to the sink; it is inert then. Never blocks.
  void End();

 private:
  struct State;

  static Span Make(std::string_view name, SpanKind kind, const base::TraceContext& parent);

  std::unique_ptr<State> state_;
};

}  // namespace mtmc::trace
