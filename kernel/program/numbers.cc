// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/numbers.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/strings/charconv.h"
#include "absl/strings/numbers.h"
#include "kernel/program/source_lexer.h"

namespace mtmc::kernel {
namespace {

// More are tables of numbers.
constexpr size_t kMostNumbers = 256;

// Of a token without its suffix; 0 for what is out of range or no number.
double ValueOf(std::string_view token) {
  std::string text(token);
  std::erase(text, '\'');
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    uint64_t bits = 0;
    const bool is_read = absl::SimpleHexAtoi(text.substr(0, text.find_first_of("uUlL")), &bits);
    return is_read ? static_cast<double>(bits) : 0;
  }
  double value = 0;
  const auto read = absl::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() ? value : 0;
}

void Add(const std::vector<SourceToken>& tokens, std::set<double>& found) {
  for (const SourceToken& token : tokens) {
    if (found.size() == kMostNumbers) return;
    if (token.kind != SourceToken::Kind::kNumber) continue;
    const double value = ValueOf(token.text);
    if (value > 0) found.insert(value);
  }
}

}  // namespace

std::vector<double> NumbersOf(const Program& program) {
  if (program.dialect == Dialect::kTriton) return {};
  const LexedSource lexed = LexSource(program.text, program.dialect);
  std::set<double> found;
  for (const SourceDirective& directive : lexed.directives()) Add(directive.tokens, found);
  Add(lexed.tokens(), found);
  return {found.begin(), found.end()};
}

}  // namespace mtmc::kernel
