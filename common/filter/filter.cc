// SPDX-License-Identifier: Apache-2.0
#include "common/filter/filter.h"

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/timestamp.pb.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/filter/node.h"

namespace mtmc::filter {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// -1, 0 or 1; nothing for values without an order.
template <typename T>
std::optional<int> Order(const T& left, const T& right) {
  if (left < right) return -1;
  if (right < left) return 1;
  if (left == right) return 0;
  return std::nullopt;
}

bool Holds(Relation relation, std::optional<int> order) {
  if (!order) return false;
  switch (relation) {
    case Relation::kEqual:
    case Relation::kHas:
      return *order == 0;
    case Relation::kUnequal:
      return *order != 0;
    case Relation::kLess:
      return *order < 0;
    case Relation::kLessOrEqual:
      return *order <= 0;
    case Relation::kGreater:
      return *order > 0;
    case Relation::kGreaterOrEqual:
      return *order >= 0;
  }
  return false;
}

bool Fits(const Pattern& pattern, const std::string& text) {
  if (pattern.is_open_before && pattern.is_open_behind)
    return absl::StrContains(text, pattern.text);
  if (pattern.is_open_before) return absl::EndsWith(text, pattern.text);
  if (pattern.is_open_behind) return absl::StartsWith(text, pattern.text);
  return text == pattern.text;
}

// The values of one field, whether it is a list or not.
class Reader {
 public:
  Reader(const Message& message, const FieldDescriptor& field)
      : message_(message), field_(field), reflection_(*message.GetReflection()) {}

  int size() const { return field_.is_repeated() ? reflection_.FieldSize(message_, &field_) : 1; }

  std::optional<int> OrderOf(int i, const Value& value) const {
    if (const auto* wanted = std::get_if<bool>(&value)) return Order(Bool(i), *wanted);
    if (const auto* pattern = std::get_if<Pattern>(&value)) {
      return Fits(*pattern, String(i)) ? 0 : 1;
    }
    if (const auto* time = std::get_if<absl::Time>(&value)) {
      const auto& stamp = static_cast<const google::protobuf::Timestamp&>(Submessage(i));
      return Order(absl::FromUnixSeconds(stamp.seconds()) + absl::Nanoseconds(stamp.nanos()),
                   *time);
    }
    if (const auto* duration = std::get_if<absl::Duration>(&value)) {
      const auto& span = static_cast<const google::protobuf::Duration&>(Submessage(i));
      return Order(absl::Seconds(span.seconds()) + absl::Nanoseconds(span.nanos()), *duration);
    }
    if (const auto* number = std::get_if<double>(&value)) return Order(Double(i), *number);
    if (const auto* number = std::get_if<int64_t>(&value)) return OrderOfInteger(i, *number);
    return std::nullopt;
  }

 private:
  std::optional<int> OrderOfInteger(int i, int64_t value) const {
    const bool is_floating = field_.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE ||
                             field_.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT;
    if (is_floating) return Order(Double(i), static_cast<double>(value));
    return Order(Integer(i), value);
  }

  bool Bool(int i) const {
    return field_.is_repeated() ? reflection_.GetRepeatedBool(message_, &field_, i)
                                : reflection_.GetBool(message_, &field_);
  }

  std::string String(int i) const {
    return field_.is_repeated() ? reflection_.GetRepeatedString(message_, &field_, i)
                                : reflection_.GetString(message_, &field_);
  }

  const Message& Submessage(int i) const {
    return field_.is_repeated() ? reflection_.GetRepeatedMessage(message_, &field_, i)
                                : reflection_.GetMessage(message_, &field_);
  }

  double Double(int i) const {
    switch (field_.cpp_type()) {
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return field_.is_repeated() ? reflection_.GetRepeatedDouble(message_, &field_, i)
                                    : reflection_.GetDouble(message_, &field_);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return field_.is_repeated() ? reflection_.GetRepeatedFloat(message_, &field_, i)
                                    : reflection_.GetFloat(message_, &field_);
      default:
        return static_cast<double>(Integer(i));
    }
  }

  int64_t Integer(int i) const {
    switch (field_.cpp_type()) {
      case FieldDescriptor::CPPTYPE_ENUM:
        return field_.is_repeated() ? reflection_.GetRepeatedEnumValue(message_, &field_, i)
                                    : reflection_.GetEnumValue(message_, &field_);
      case FieldDescriptor::CPPTYPE_INT32:
        return field_.is_repeated() ? reflection_.GetRepeatedInt32(message_, &field_, i)
                                    : reflection_.GetInt32(message_, &field_);
      case FieldDescriptor::CPPTYPE_UINT32:
        return field_.is_repeated() ? reflection_.GetRepeatedUInt32(message_, &field_, i)
                                    : reflection_.GetUInt32(message_, &field_);
      case FieldDescriptor::CPPTYPE_UINT64:
        return static_cast<int64_t>(field_.is_repeated()
                                        ? reflection_.GetRepeatedUInt64(message_, &field_, i)
                                        : reflection_.GetUInt64(message_, &field_));
      default:
        return field_.is_repeated() ? reflection_.GetRepeatedInt64(message_, &field_, i)
                                    : reflection_.GetInt64(message_, &field_);
    }
  }

  const Message& message_;
  const FieldDescriptor& field_;
  const Reflection& reflection_;
};

bool IsThere(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  if (field.is_repeated()) return reflection.FieldSize(message, &field) > 0;
  return reflection.HasField(message, &field);
}

bool Compare(const Message& message, const Comparison& comparison) {
  const Message* owner = &message;
  for (size_t i = 0; i + 1 < comparison.path.size(); ++i) {
    // What is missing equals nothing, and has no order.
    if (!IsThere(*owner, *comparison.path[i])) return comparison.relation == Relation::kUnequal;
    owner = &owner->GetReflection()->GetMessage(*owner, comparison.path[i]);
  }
  const FieldDescriptor& field = *comparison.path.back();
  if (std::holds_alternative<Anything>(comparison.value)) return IsThere(*owner, field);
  if (field.has_presence() && !IsThere(*owner, field)) {
    return comparison.relation == Relation::kUnequal;
  }
  const Reader reader(*owner, field);
  for (int i = 0; i < reader.size(); ++i) {
    if (Holds(comparison.relation, reader.OrderOf(i, comparison.value))) return true;
  }
  return false;
}

bool Evaluate(const Filter::Node& node, const Message& message) {
  const auto holds = [&message](const auto& child) { return Evaluate(*child, message); };
  switch (node.kind) {
    case Filter::Node::Kind::kAnd:
      return std::all_of(node.children.begin(), node.children.end(), holds);
    case Filter::Node::Kind::kOr:
      return std::any_of(node.children.begin(), node.children.end(), holds);
    case Filter::Node::Kind::kNot:
      return !holds(node.children.front());
    case Filter::Node::Kind::kComparison:
      return Compare(message, node.comparison);
  }
  return false;
}

}  // namespace

Filter::Filter(std::shared_ptr<const Node> root) : root_(std::move(root)) {}

bool Filter::Matches(const Message& message) const {
  return root_ == nullptr || Evaluate(*root_, message);
}

}  // namespace mtmc::filter
