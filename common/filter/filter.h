// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"

namespace google::protobuf {
class Descriptor;
class Message;
}  // namespace google::protobuf

namespace mtmc::filter {

// A condition on messages of one type, such as
//
//   state = SUCCEEDED AND (best_speedup > 1.5 OR problem.display_name = "gelu*")
//
// A part of the filter language of Google's API improvement proposal 160;
// docs/filters.md has the grammar and what each comparison means. Value type,
// cheap to copy; thread-safe.
class Filter {
 public:
  // The filter that holds for everything.
  Filter() = default;

  // Checks `text` against the fields of `type`. Empty text holds for everything.
  // INVALID_ARGUMENT with reason INVALID_FILTER, the column and what could stand
  // there. Text is at most 2,048 bytes and nested at most 32 deep.
  static absl::StatusOr<Filter> Parse(std::string_view text,
                                      const google::protobuf::Descriptor& type);

  // REQUIRES: `message` is of the type given to Parse.
  bool Matches(const google::protobuf::Message& message) const;

  bool is_empty() const { return root_ == nullptr; }

  // Hidden in the source.
  struct Node;

 private:
  explicit Filter(std::shared_ptr<const Node> root);

  // Null if everything matches. Shared because nodes are immutable.
  std::shared_ptr<const Node> root_;
};

}  // namespace mtmc::filter
