// SPDX-License-Identifier: Apache-2.0
//
// The parsed form of a filter. Private to this folder.
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/filter/filter.h"

namespace mtmc::filter {

enum class Relation { kEqual, kUnequal, kLess, kLessOrEqual, kGreater, kGreaterOrEqual, kHas };

// Text with a `*` at one end or both.
struct Pattern {
  std::string text;
  bool is_open_before = false;
  bool is_open_behind = false;
};

// `field:*`: the field is there.
struct Anything {};

// What a field is compared with, in the form that the field's type has. Enumerators are
// their numbers.
using Value = std::variant<Anything, bool, int64_t, double, Pattern, absl::Time, absl::Duration>;

struct Comparison {
  // From the message down; all but the last are messages of one value.
  std::vector<const google::protobuf::FieldDescriptor*> path;
  Relation relation = Relation::kEqual;
  Value value;
};

struct Filter::Node {
  enum class Kind { kAnd, kOr, kNot, kComparison };
  Kind kind = Kind::kComparison;
  // Of kAnd and kOr at least two, of kNot one.
  std::vector<std::shared_ptr<const Node>> children;
  Comparison comparison;
};

}  // namespace mtmc::filter
