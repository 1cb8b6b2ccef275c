// SPDX-License-Identifier: Apache-2.0
#include "common/base/trace_context.h"

#include <algorithm>
#include <span>

namespace mtmc::base {
namespace {

// "00-" 32 digits "-" 16 digits "-" 2 digits.
constexpr size_t kTraceIdAt = 3;
constexpr size_t kSpanIdAt = 36;
constexpr size_t kFlagsAt = 53;
constexpr size_t kLength = 55;

constexpr uint8_t kSampled = 1;

thread_local TraceContext current;

std::string ToHex(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

// Capital letters are malformed.
std::optional<uint8_t> DigitOf(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
  return std::nullopt;
}

// REQUIRES: `hex` has two digits for each byte.
bool FromHex(std::string_view hex, std::span<uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto high = DigitOf(hex[2 * i]);
    const auto low = DigitOf(hex[2 * i + 1]);
    if (!high || !low) return false;
    bytes[i] = static_cast<uint8_t>(*high << 4 | *low);
  }
  return true;
}

bool IsZero(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

}  // namespace

bool TraceContext::is_valid() const { return !IsZero(trace_id) && !IsZero(span_id); }

std::string TraceContext::trace_id_hex() const { return ToHex(trace_id); }

std::string TraceContext::span_id_hex() const { return ToHex(span_id); }

std::optional<TraceContext> ParseTraceParent(std::string_view header) {
  if (header.size() < kLength) return std::nullopt;
  uint8_t version = 0;
  uint8_t flags = 0;
  TraceContext context;
  const bool is_parsed = FromHex(header.substr(0, 2), {&version, 1}) &&
                         FromHex(header.substr(kTraceIdAt, 32), context.trace_id) &&
                         FromHex(header.substr(kSpanIdAt, 16), context.span_id) &&
                         FromHex(header.substr(kFlagsAt, 2), {&flags, 1});
  if (!is_parsed || header[kTraceIdAt - 1] != '-' || header[kSpanIdAt - 1] != '-' ||
      header[kFlagsAt - 1] != '-') {
    return std::nullopt;
  }
  // 255 is forbidden; version 00 ends here, a later one may go on after a dash.
  if (version == 255) return std::nullopt;
  if (header.size() > kLength && (version == 0 || header[kLength] != '-')) return std::nullopt;
  if (!context.is_valid()) return std::nullopt;
  context.is_sampled = (flags & kSampled) != 0;
  return context;
}

std::string FormatTraceParent(const TraceContext& context) {
  if (!context.is_valid()) return "";
  return "00-" + context.trace_id_hex() + "-" + context.span_id_hex() +
         (context.is_sampled ? "-01" : "-00");
}

const TraceContext& CurrentTrace() { return current; }

TraceScope::TraceScope(const TraceContext& context) : outer_(current) { current = context; }

TraceScope::~TraceScope() { current = outer_; }

}  // namespace mtmc::base
