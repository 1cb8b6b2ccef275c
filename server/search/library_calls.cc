// SPDX-License-Identifier: Apache-2.0
#include "server/search/library_calls.h"

#include <set>

#include "absl/strings/ascii.h"
#include "kernel/graph/operators.h"

namespace mtmc::search {
namespace {

bool IsNamePart(char c) { return c == '_' || absl::ascii_isalnum(static_cast<unsigned char>(c)); }

}  // namespace

const std::vector<std::string>& LibraryCalls() {
  static const auto& calls = *new std::vector<std::string>([] {
    std::vector<std::string> names;
    for (const kernel::Operator& row : kernel::Operators()) {
      if (row.is_callable()) names.emplace_back(row.name);
    }
    return names;
  }());
  return calls;
}

std::vector<std::string> LibraryCallsIn(std::string_view program) {
  std::set<std::string_view> names;
  for (size_t at = program.find("::"); at != std::string_view::npos;
       at = program.find("::", at + 2)) {
    size_t begin = at;
    while (begin > 0 && IsNamePart(program[begin - 1])) --begin;
    size_t end = at + 2;
    while (end < program.size() && IsNamePart(program[end])) ++end;
    const kernel::Operator* row = kernel::FindOperator(program.substr(begin, end - begin));
    if (row != nullptr && row->is_callable()) names.insert(row->name);
  }
  return {names.begin(), names.end()};
}

}  // namespace mtmc::search
