// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/call_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "common/base/status_macros.h"
#include "kernel/graph/identifier.h"
#include "kernel/graph/text.h"
#include "kernel/program/scanner.h"

namespace mtmc::kernel {
namespace {

// Far above any ATen signature, and lists of tensors to join: a recurrence that is written
// out has one for each step.
constexpr size_t kMaxArguments = 4096;
constexpr size_t kMaxResults = 64;

absl::Status Invalid(std::string_view text, std::string_view problem) {
  return absl::InvalidArgumentError(Concat(Quoted(text), " ", problem));
}

// The closing parenthesis of the one at `open`; npos when it is missing.
size_t FindClosing(std::string_view text, size_t open) {
  int depth = 0;
  char quote = '\0';
  for (size_t at = open; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != '\0') {
      if (c == '\\') {
        ++at;
      } else if (c == quote) {
        quote = '\0';
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')' && --depth == 0) {
      return at;
    }
  }
  return std::string_view::npos;
}

// `aten::name` or `aten::name.overload`.
absl::Status ParseOperator(std::string_view text, LibraryCall& call) {
  const size_t colons = std::min(text.find("::"), text.size());
  const std::string_view library = text.substr(0, colons);
  const std::string_view rest = text.substr(std::min(colons + 2, text.size()));
  const size_t dot = rest.find('.');
  const std::string_view name = rest.substr(0, dot);
  if (!IsIdentifier(library) || !IsIdentifier(name)) {
    return Invalid(text, "is no operator such as aten::linear");
  }
  call.op = Concat(library, "::", name);
  if (dot != std::string_view::npos) {
    const std::string_view overload = rest.substr(dot + 1);
    if (!IsIdentifier(overload)) return Invalid(text, "has no overload after the point");
    call.overload = std::string(overload);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ParseString(std::string_view text) {
  std::string value;
  for (size_t at = 1; at < text.size(); ++at) {
    char c = text[at];
    if (c == text.front()) {
      if (at + 1 == text.size()) return value;
      break;
    }
    if (c == '\\') {
      if (++at == text.size()) break;
      c = text[at];
      if (c != '\\' && c != '"' && c != '\'') return Invalid(text, "has an unknown escape");
    }
    if (!absl::ascii_isprint(static_cast<unsigned char>(c)))
      return Invalid(text, "is not printable");
    value += c;
  }
  return Invalid(text, "is no string");
}

constexpr std::string_view kStrided = "as_strided(";

// `[64, 16]`, of integers that are not negative.
absl::StatusOr<std::vector<int64_t>> ParseExtents(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    return Invalid(text, "is no list such as [64, 16]");
  }
  MTMC_ASSIGN_OR_RETURN(const std::vector<std::string_view> parts,
                        SplitList(text.substr(1, text.size() - 2)));
  std::vector<int64_t> values;
  for (const std::string_view part : parts) {
    const std::optional<int64_t> value = FindInteger(part);
    if (!value || *value < 0) return Invalid(part, "must be an integer from 0 on");
    values.push_back(*value);
  }
  return values;
}

// `as_strided(x, [64, 16], [1, 64], 0)`, the offset 0 where it is left out.
absl::StatusOr<CallArgument::TensorName> ParseStrided(std::string_view text) {
  constexpr std::string_view kForm = "must be as_strided(TENSOR, [EXTENTS], [STRIDES], OFFSET)";
  if (text.back() != ')') return Invalid(text, kForm);
  MTMC_ASSIGN_OR_RETURN(const std::vector<std::string_view> parts,
                        SplitList(text.substr(kStrided.size(), text.size() - kStrided.size() - 1)));
  if (parts.size() < 3 || parts.size() > 4 || !IsIdentifier(parts[0])) return Invalid(text, kForm);
  StridedView view;
  MTMC_ASSIGN_OR_RETURN(view.shape, ParseExtents(parts[1]));
  MTMC_ASSIGN_OR_RETURN(view.strides, ParseExtents(parts[2]));
  if (view.shape.size() != view.strides.size()) {
    return Invalid(text, "has another number of strides than of extents");
  }
  // A type that cannot be written is no view either: too many extents, or too large.
  const TensorType type{.data_type = DataType::kF64, .shape = view.shape};
  if (!FindTensorType(ToText(type))) return Invalid(parts[1], "is no shape of a tensor");
  if (parts.size() == 4) {
    const std::optional<int64_t> offset = FindInteger(parts[3]);
    if (!offset || *offset < 0) return Invalid(parts[3], "must be an integer from 0 on");
    view.offset = *offset;
  }
  return CallArgument::TensorName{.name = std::string(parts[0]), .view = std::move(view)};
}

absl::StatusOr<CallArgument> ParseValue(std::string_view text, bool is_element) {
  CallArgument argument;
  if (text == "None") {
    argument.value = NoneLiteral{};
  } else if (text == "True" || text == "False") {
    argument.value = text == "True";
  } else if (const std::optional<double> real = FindReal(text)) {
    argument.value = *real;
  } else if (text.front() == '"' || text.front() == '\'') {
    absl::StatusOr<std::string> value = ParseString(text);
    if (!value.ok()) return value.status();
    argument.value = *std::move(value);
  } else if (IsIdentifier(text)) {
    argument.value = CallArgument::TensorName{.name = std::string(text)};
  } else if (text.substr(0, kStrided.size()) == kStrided) {
    MTMC_ASSIGN_OR_RETURN(argument.value, ParseStrided(text));
  } else if (text.front() == '[') {
    if (is_element) return Invalid(text, "is a list within a list");
    if (text.back() != ']') return Invalid(text, "misses a ]");
    const absl::StatusOr<std::vector<std::string_view>> parts =
        SplitList(text.substr(1, text.size() - 2));
    if (!parts.ok()) return parts.status();
    if (parts->size() > kMaxArguments) return Invalid(text, "has too many elements");
    std::vector<CallArgument> elements;
    for (const std::string_view part : *parts) {
      absl::StatusOr<CallArgument> element = ParseValue(part, /*is_element=*/true);
      if (!element.ok()) return element.status();
      elements.push_back(*std::move(element));
    }
    argument.value = std::move(elements);
  } else if (const std::optional<int64_t> integer = FindInteger(text)) {
    argument.value = *integer;
  } else {
    return Invalid(text,
                   "is no tensor name, as_strided(...), number, True, False, None, \"string\" or "
                   "[list]");
  }
  return argument;
}

absl::Status ParseArguments(std::string_view text, LibraryCall& call) {
  const absl::StatusOr<std::vector<std::string_view>> parts = SplitList(text);
  if (!parts.ok()) return parts.status();
  if (parts->size() > kMaxArguments) return Invalid(text, "has too many arguments");
  for (const std::string_view part : *parts) {
    const size_t equals = part.find('=');
    const std::string_view keyword =
        equals == std::string_view::npos ? "" : Trim(part.substr(0, equals));
    const bool has_keyword = IsIdentifier(keyword);
    const std::string_view value = has_keyword ? Trim(part.substr(equals + 1)) : part;
    if (value.empty()) return Invalid(part, "has no value");
    absl::StatusOr<CallArgument> argument = ParseValue(value, /*is_element=*/false);
    if (!argument.ok()) return argument.status();
    if (has_keyword) {
      argument->keyword = std::string(keyword);
    } else if (!call.arguments.empty() && !call.arguments.back().keyword.empty()) {
      return Invalid(part, "is positional but follows a keyword argument");
    }
    call.arguments.push_back(*std::move(argument));
  }
  return absl::OkStatus();
}

absl::Status ParsePrecision(std::string_view text, LibraryCall& call) {
  using Precision = LibraryCall::Precision;
  for (const Precision precision : {Precision::kDefault, Precision::kTf32, Precision::kIeee}) {
    if (text != ToText(precision)) continue;
    call.precision = precision;
    return absl::OkStatus();
  }
  return Invalid(text, "is no precision; one of default, tf32, ieee");
}

absl::Status ParseLayout(std::string_view text, LibraryCall& call) {
  if (text != "channels_last") return Invalid(text, "is no layout; there is channels_last");
  call.is_channels_last = true;
  return absl::OkStatus();
}

// Cuts `field=...` off the end of `text` and gives what stands behind the sign; absent where it
// has no such field.
std::optional<std::string_view> TakeField(std::string_view field, std::string_view& text) {
  const size_t at = text.find(field);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view value = Trim(text.substr(at + field.size()));
  text = Trim(text.substr(0, at));
  return value;
}

// `h, _ precision=tf32 layout=channels_last`.
absl::Status ParseResults(std::string_view text, LibraryCall& call) {
  if (const auto layout = TakeField("layout=", text)) {
    const absl::Status status = ParseLayout(*layout, call);
    if (!status.ok()) return status;
  }
  if (const auto precision = TakeField("precision=", text)) {
    const absl::Status status = ParsePrecision(*precision, call);
    if (!status.ok()) return status;
  }
  const absl::StatusOr<std::vector<std::string_view>> parts = SplitList(text);
  if (!parts.ok()) return parts.status();
  if (parts->empty() || parts->size() > kMaxResults) return Invalid(text, "names no results");
  for (const std::string_view part : *parts) {
    if (!IsIdentifier(part)) return Invalid(part, "is no result name");
    const bool is_repeated = part != "_" && std::find(call.results.begin(), call.results.end(),
                                                      part) != call.results.end();
    if (is_repeated) return Invalid(part, "is a result twice");
    call.results.emplace_back(part);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LibraryCall> ParseCall(std::string_view text) {
  LibraryCall call;
  text = Trim(text);
  const size_t open = text.find('(');
  if (open == std::string_view::npos) return Invalid(text, "misses a ( after the operator");
  if (absl::Status status = ParseOperator(Trim(text.substr(0, open)), call); !status.ok()) {
    return status;
  }
  const size_t close = FindClosing(text, open);
  if (close == std::string_view::npos) return Invalid(text, "misses a )");
  if (absl::Status status = ParseArguments(text.substr(open + 1, close - open - 1), call);
      !status.ok()) {
    return status;
  }
  const std::string_view tail = Trim(text.substr(close + 1));
  if (tail.substr(0, 2) != "->") return Invalid(text, "misses `-> result`");
  if (absl::Status status = ParseResults(Trim(tail.substr(2)), call); !status.ok()) {
    return status;
  }
  return call;
}

}  // namespace mtmc::kernel
