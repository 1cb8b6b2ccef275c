// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mtmc::base {

// Which trace some work belongs to, and the span in it that asked for the work: what
// travels between processes as W3C Trace Context. The default belongs to none. A value.
struct TraceContext {
  std::array<uint8_t, 16> trace_id = {};
  std::array<uint8_t, 8> span_id = {};
  // Whether the spans of this trace are kept.
  bool is_sampled = false;

  // Neither id is zero.
  bool is_valid() const;

  // 32 and 16 lowercase hexadecimal digits.
  std::string trace_id_hex() const;
  std::string span_id_hex() const;

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

// What a header `traceparent` says; absent if it is malformed or its ids are zero. Of a
// version later than 00 the known part is read, as the standard asks for.
std::optional<TraceContext> ParseTraceParent(std::string_view header);

// The header of version 00; empty if `context` is not valid.
std::string FormatTraceParent(const TraceContext& context);

// The context of what this thread does now; not valid outside of all scopes.
const TraceContext& CurrentTrace();

// Makes `context` that of this thread for its own lifetime. Work that goes on on another
// thread, or later, opens a scope of its own there: nothing is handed on by itself.
// Immovable; destroyed on the thread that made it, the newest first.
class TraceScope {
 public:
  explicit TraceScope(const TraceContext& context);
  ~TraceScope();

  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  const TraceContext outer_;
};

}  // namespace mtmc::base
