// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/units.h"

#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernel/program/signature.h"
#include "kernel/program/source_lexer.h"

namespace mtmc::kernel {
namespace {

// A compiler starts anew for each unit, which takes it about as long as a small kernel.
constexpr size_t kFewKernels = 8;

// How many times the source all units together may be, for what they share.
constexpr size_t kMostCopies = 4;

using Tokens = std::vector<SourceToken>;

size_t PlaceOf(std::string_view part, const LexedSource& lexed) {
  return static_cast<size_t>(part.data() - lexed.spliced().data());
}

// The first token at a place of the spliced text or behind it.
Tokens::const_iterator FirstTokenFrom(size_t place, const LexedSource& lexed) {
  const Tokens& tokens = lexed.tokens();
  return std::lower_bound(
      tokens.begin(), tokens.end(), place,
      [&](const SourceToken& token, size_t at) { return PlaceOf(token.text, lexed) < at; });
}

bool EndsDeclaration(const SourceToken& token) {
  return token.text == ";" || token.text == "{" || token.text == "}";
}

// Absent where its body has no end.
std::optional<SourceExtent> FindExtent(const LexedSource& lexed, const KernelSignature& kernel) {
  if (kernel.body_end == 0) return std::nullopt;
  const Tokens& tokens = lexed.tokens();
  auto first = FirstTokenFrom(kernel.body - 1, lexed);
  while (first != tokens.begin() && !EndsDeclaration(*std::prev(first))) --first;
  return SourceExtent{PlaceOf(first->text, lexed), kernel.body_end + 1};
}

// Whether each kernel's name stands at its definition alone.
bool AreNamedOnce(const LexedSource& lexed, const std::vector<KernelSignature>& kernels) {
  std::map<std::string_view, int> uses;
  for (const KernelSignature& kernel : kernels) uses[kernel.name] = 0;
  const auto count = [&](const Tokens& tokens) {
    for (const SourceToken& token : tokens) {
      const auto found = uses.find(token.text);
      if (found != uses.end()) ++found->second;
    }
  };
  count(lexed.tokens());
  for (const SourceDirective& directive : lexed.directives()) count(directive.tokens);
  return std::all_of(uses.begin(), uses.end(), [](const auto& use) { return use.second == 1; });
}

// Whether preprocessor lines leave every kernel where it is: none includes anything, and within
// kernels there are pragmas alone.
bool ArePlain(const LexedSource& lexed, const std::vector<SourceExtent>& extents) {
  for (const SourceDirective& directive : lexed.directives()) {
    if (directive.name == "pragma") continue;
    if (directive.name.empty() || directive.name.starts_with("include")) return false;
    const size_t place = PlaceOf(directive.name, lexed);
    const auto after =
        std::upper_bound(extents.begin(), extents.end(), place,
                         [](size_t at, const SourceExtent& extent) { return at < extent.begin; });
    if (after != extents.begin() && place < std::prev(after)->end) return false;
  }
  return true;
}

// All kernels, in the order of the source; empty where one cannot be told from the rest.
std::vector<SourceExtent> FindExtents(const LexedSource& lexed,
                                      const std::vector<KernelSignature>& kernels) {
  std::vector<SourceExtent> extents;
  for (const KernelSignature& kernel : kernels) {
    const auto extent = FindExtent(lexed, kernel);
    if (!extent) return {};
    extents.push_back(*extent);
  }
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) return {};
  }
  return extents;
}

// Lines with something on them, without what they are indented by.
std::string WithoutBlanks(const std::string& text) {
  std::string lines;
  for (const auto line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    absl::StrAppend(&lines, absl::StripAsciiWhitespace(line), "\n");
  }
  return lines;
}

// Each becomes a blank, as the language has it.
std::string WithoutComments(const LexedSource& lexed) {
  const std::string_view text = lexed.spliced();
  std::string plain;
  size_t at = 0;
  for (const SourceExtent& comment : lexed.comments()) {
    plain += text.substr(at, comment.begin - at);
    plain += ' ';
    at = comment.end;
  }
  plain += text.substr(at);
  return plain;
}

// Names of a kernel and its parameters that say nothing of which it is.
constexpr std::string_view kKernelName = "mtmc_unit";
constexpr std::string_view kParameterName = "mtmc_unit_";

// Whether kernels may get other names: none is spelled out, and ours are not taken.
bool AreNamesFree(const LexedSource& lexed) {
  const auto is_taken = [](const SourceToken& token) {
    return token.text.starts_with(kKernelName) || token.text == "__func__" ||
           token.text == "__FUNCTION__" || token.text == "__PRETTY_FUNCTION__";
  };
  const auto is_free = [&](const Tokens& tokens) {
    return std::none_of(tokens.begin(), tokens.end(), is_taken);
  };
  return is_free(lexed.tokens()) &&
         std::all_of(lexed.directives().begin(), lexed.directives().end(),
                     [&](const SourceDirective& directive) { return is_free(directive.tokens); });
}

// Whether the token at `index` is the name of a member: `v.x`, `p->x`, `N::x`.
bool IsMember(const Tokens& tokens, size_t index) {
  if (index == 0) return false;
  const std::string_view before = tokens[index - 1].text;
  return before == "." || before == "::" ||
         (before == ">" && index > 1 && tokens[index - 2].text == "-");
}

// The kernel's text with the names above.
std::string Renamed(const LexedSource& lexed, const SourceExtent& extent,
                    const KernelSignature& kernel) {
  std::map<std::string_view, std::string> names = {{kernel.name, std::string(kKernelName)}};
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    names[kernel.parameters[i].name] = std::string(kParameterName) + std::to_string(i);
  }
  const Tokens& tokens = lexed.tokens();
  const std::string_view text = lexed.spliced();
  std::string renamed;
  size_t at = extent.begin;
  const auto end = FirstTokenFrom(extent.end, lexed);
  for (auto token = FirstTokenFrom(extent.begin, lexed); token != end; ++token) {
    const auto name = names.find(token->text);
    const auto index = static_cast<size_t>(token - tokens.begin());
    if (name == names.end() || IsMember(tokens, index)) continue;
    const size_t place = PlaceOf(token->text, lexed);
    renamed += text.substr(at, place - at);
    renamed += name->second;
    at = place + token->text.size();
  }
  renamed += text.substr(at, extent.end - at);
  return renamed;
}

}  // namespace

std::vector<SourceUnit> SplitIntoUnits(std::string_view source) {
  const LexedSource commented = LexSource(source, Dialect::kCuda);
  if (commented.is_ambiguous()) return {};
  const std::string plain = WithoutComments(commented);
  const KernelScan scan = FindKernels(plain, Dialect::kCuda);
  if (scan.kernels.size() < kFewKernels || !scan.diagnostics.empty()) return {};
  const LexedSource lexed = LexSource(plain, Dialect::kCuda);
  if (lexed.is_ambiguous() || !AreNamedOnce(lexed, scan.kernels)) return {};
  const std::vector<SourceExtent> extents = FindExtents(lexed, scan.kernels);
  if (extents.empty() || !ArePlain(lexed, extents)) return {};

  const std::string_view text = lexed.spliced();
  size_t shared = text.size();
  for (const SourceExtent& extent : extents) shared -= extent.end - extent.begin;
  const size_t most = kMostCopies * text.size() / std::max<size_t>(shared, 1);
  const size_t num_units = std::min(extents.size(), most);
  const bool is_renamed = num_units == extents.size() && AreNamesFree(lexed);

  std::vector<SourceUnit> units;
  for (size_t u = 0; u < num_units; ++u) {
    std::map<std::string, std::string> names;
    std::string part;
    size_t at = 0;
    for (size_t i = 0; i < extents.size(); ++i) {
      const SourceExtent& extent = extents[i];
      part += text.substr(at, extent.begin - at);
      at = extent.end;
      if (i * num_units / extents.size() != u) continue;
      const KernelSignature& kernel = scan.kernels[i];
      names[kernel.name] = is_renamed ? std::string(kKernelName) : kernel.name;
      part += is_renamed ? Renamed(lexed, extent, kernel)
                         : std::string(text.substr(extent.begin, at - extent.begin));
    }
    part += text.substr(at);
    units.push_back({.text = WithoutBlanks(part), .kernels = std::move(names)});
  }
  return units;
}

}  // namespace mtmc::kernel
