// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/units.h"

#include <algorithm>
#include <map>
#include <optional>

#include "kernel/program/signature.h"
#include "kernel/program/source_lexer.h"

namespace mtmc::kernel {
namespace {

// A compiler starts anew for each unit, which takes it about as long as a small kernel.
constexpr size_t kFewKernels = 8;

// How many times the source all units together may be, for what they share.
constexpr size_t kMostCopies = 4;

// One kernel with its body, from its first word on, in the spliced text.
struct Extent {
  size_t begin = 0;
  size_t end = 0;
};

using Tokens = std::vector<SourceToken>;

size_t PlaceOf(std::string_view part, const LexedSource& lexed) {
  return static_cast<size_t>(part.data() - lexed.spliced().data());
}

bool EndsDeclaration(const SourceToken& token) {
  return token.text == ";" || token.text == "{" || token.text == "}";
}

// Absent where its body has no end.
std::optional<Extent> FindExtent(const LexedSource& lexed, const KernelSignature& kernel) {
  if (kernel.body_end == 0) return std::nullopt;
  const Tokens& tokens = lexed.tokens();
  auto first = std::lower_bound(
      tokens.begin(), tokens.end(), kernel.body - 1,
      [&](const SourceToken& token, size_t place) { return PlaceOf(token.text, lexed) < place; });
  while (first != tokens.begin() && !EndsDeclaration(*std::prev(first))) --first;
  return Extent{PlaceOf(first->text, lexed), kernel.body_end + 1};
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
bool ArePlain(const LexedSource& lexed, const std::vector<Extent>& extents) {
  for (const SourceDirective& directive : lexed.directives()) {
    if (directive.name == "pragma") continue;
    if (directive.name.empty() || directive.name.starts_with("include")) return false;
    const size_t place = PlaceOf(directive.name, lexed);
    const auto after =
        std::upper_bound(extents.begin(), extents.end(), place,
                         [](size_t at, const Extent& extent) { return at < extent.begin; });
    if (after != extents.begin() && place < std::prev(after)->end) return false;
  }
  return true;
}

// All kernels in the order of the source; empty where one cannot be told from the rest.
std::vector<Extent> FindExtents(const LexedSource& lexed,
                                const std::vector<KernelSignature>& kernels) {
  std::vector<Extent> extents;
  for (const KernelSignature& kernel : kernels) {
    const auto extent = FindExtent(lexed, kernel);
    if (!extent) return {};
    extents.push_back(*extent);
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) return {};
  }
  return extents;
}

}  // namespace

std::vector<std::string> SplitIntoUnits(std::string_view source) {
  const KernelScan scan = FindKernels(source, Dialect::kCuda);
  if (scan.kernels.size() < kFewKernels || !scan.diagnostics.empty()) return {};
  const LexedSource lexed = LexSource(source, Dialect::kCuda);
  if (lexed.is_ambiguous() || !AreNamedOnce(lexed, scan.kernels)) return {};
  const std::vector<Extent> extents = FindExtents(lexed, scan.kernels);
  if (extents.empty() || !ArePlain(lexed, extents)) return {};

  const std::string_view text = lexed.spliced();
  size_t shared = text.size();
  for (const Extent& extent : extents) shared -= extent.end - extent.begin;
  const size_t most = kMostCopies * text.size() / std::max<size_t>(shared, 1);
  const size_t num_units = std::min(extents.size(), most);

  std::vector<std::string> units;
  for (size_t unit = 0; unit < num_units; ++unit) {
    std::string& part = units.emplace_back();
    size_t at = 0;
    for (size_t i = 0; i < extents.size(); ++i) {
      part += text.substr(at, extents[i].begin - at);
      at = i * num_units / extents.size() == unit ? extents[i].begin : extents[i].end;
    }
    part += text.substr(at);
  }
  return units;
}

}  // namespace mtmc::kernel
