// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace mtmc::rest {

// The path of a google.api.http rule, such as `/v1/{name=projects/*/jobs/*}:cancel`,
// in the grammar of google.api.HttpRule without `**`. Value type.
class PathTemplate {
 public:
  // Field path (`name`, `digest.sha256`) and its value.
  using Bindings = std::vector<std::pair<std::string, std::string>>;

  // INVALID_ARGUMENT when `text` is no template.
  static absl::StatusOr<PathTemplate> Parse(std::string_view text);

  // What the variables are bound to in `path`, without its query; nothing if it does not
  // fit. Escapes of the path (`%2F`) are resolved within the segments that they stand in.
  std::optional<Bindings> Match(std::string_view path) const;

 private:
  struct Variable {
    std::string field;
    // Segments that it spans.
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  // Literals, or `*` for any that is not empty.
  std::vector<std::string> segments_;
  std::vector<Variable> variables_;
  // What follows the last colon; empty if nothing does.
  std::string verb_;
};

// Resolves `%41` and, in a query, `+`. INVALID_ARGUMENT for a broken escape.
absl::StatusOr<std::string> Unescape(std::string_view text, bool is_query);

}  // namespace mtmc::rest
