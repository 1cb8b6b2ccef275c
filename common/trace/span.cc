// SPDX-License-Identifier: Apache-2.0
#include "common/trace/span.h"

#include <atomic>
#include <cstring>
#include <random>
#include <span>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace mtmc::trace {
namespace {

// What StartTracing said. Spans are made in places that know nothing of each other.
struct Tracing {
  std::atomic<bool> is_on = false;
  absl::Mutex mu;
  std::shared_ptr<SpanSink> sink ABSL_GUARDED_BY(mu);
};

// Leaked, so that spans may end while the process exits.
Tracing& TheTracing() {
  static Tracing& tracing = *new Tracing;
  return tracing;
}

std::shared_ptr<SpanSink> SinkOfNow() {
  Tracing& tracing = TheTracing();
  if (!tracing.is_on.load(std::memory_order_relaxed)) return nullptr;
  absl::MutexLock lock(&tracing.mu);
  return tracing.sink;
}

// Ids are told apart, not guarded: no cryptography. REQUIRES: a multiple of 8 bytes.
void FillAtRandom(std::span<uint8_t> id) {
  thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  for (size_t i = 0; i < id.size(); i += sizeof(uint64_t)) {
    uint64_t number = 0;
    while (number == 0) number = random();
    std::memcpy(id.data() + i, &number, sizeof number);
  }
}

}  // namespace

void StartTracing(std::shared_ptr<SpanSink> sink) {
  Tracing& tracing = TheTracing();
  absl::MutexLock lock(&tracing.mu);
  tracing.sink = std::move(sink);
  tracing.is_on.store(true, std::memory_order_relaxed);
}

void StopTracing() {
  Tracing& tracing = TheTracing();
  // Destroyed without the lock.
  std::shared_ptr<SpanSink> sink;
  absl::MutexLock lock(&tracing.mu);
  tracing.is_on.store(false, std::memory_order_relaxed);
  sink.swap(tracing.sink);
}

bool IsTracing() { return TheTracing().is_on.load(std::memory_order_relaxed); }

struct Span::State {
  SpanRecord record;
  std::shared_ptr<SpanSink> sink;
};

Span::Span() = default;

Span::~Span() { End(); }

Span::Span(Span&& other) noexcept = default;

Span& Span::operator=(Span&& other) noexcept {
  if (this == &other) return *this;
  End();
  state_ = std::move(other.state_);
  return *this;
}

Span Span::Make(std::string_view name, SpanKind kind, const base::TraceContext& parent) {
  Span span;
  std::shared_ptr<SpanSink> sink = SinkOfNow();
  if (sink == nullptr) return span;
  span.state_ = std::make_unique<State>();
  span.state_->sink = std::move(sink);
  span.state_->record = {.name = std::string(name),
                         .kind = kind,
                         .context = parent,
                         .parent_span_id = parent.span_id,
                         .start = absl::Now()};
  FillAtRandom(span.state_->record.context.span_id);
  return span;
}

Span Span::Start(std::string_view name, const SpanOptions& options) {
  if (!options.parent.is_sampled || !options.parent.is_valid()) return {};
  return Make(name, options.kind, options.parent);
}

Span Span::StartTrace(std::string_view name) {
  if (!IsTracing()) return {};
  base::TraceContext none;
  none.is_sampled = true;
  FillAtRandom(none.trace_id);
  return Make(name, SpanKind::kInternal, none);
}

const base::TraceContext& Span::context() const {
  static constexpr base::TraceContext kNone;
  return state_ == nullptr ? kNone : state_->record.context;
}

void Span::Rename(std::string_view name) {
  if (state_ != nullptr) state_->record.name = name;
}

void Span::Set(std::string_view key, AttributeValue value) {
  if (state_ == nullptr) return;
  state_->record.attributes.emplace_back(key, std::move(value));
}

void Span::Fail(std::string_view why) {
  if (state_ != nullptr) state_->record.error = why;
}

void Span::End() {
  if (state_ == nullptr) return;
  const std::unique_ptr<State> state = std::move(state_);
  state->record.end = absl::Now();
  state->sink->Take(std::move(state->record));
}

}  // namespace mtmc::trace
