// SPDX-License-Identifier: Apache-2.0
#include "kernel/writer/source_comment.h"

#include <algorithm>
#include <set>

#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

// More would hide the kernel; the rest is counted.
constexpr size_t kMaxQuotedLines = 12;
constexpr size_t kMaxQuotedBytes = 90;

std::set<int> LineSet(const Graph& graph, const std::vector<std::string>& nodes) {
  const std::set<std::string, std::less<>> names(nodes.begin(), nodes.end());
  std::set<int> lines;
  for (const GraphNode& node : graph.nodes) {
    if (node.line > 0 && names.contains(node.name)) lines.insert(node.line);
  }
  return lines;
}

// One line of source that can stand in a `//` comment: printable, not ending
// in a backslash, which would continue the comment.
std::string Quote(std::string_view line) {
  std::string text;
  for (unsigned char c : Trim(line).substr(0, kMaxQuotedBytes)) {
    text += c < 0x20 || c == 0x7f ? ' ' : static_cast<char>(c);
  }
  while (!text.empty() && (text.back() == '\\' || (text.back() & 0x80) != 0)) text.pop_back();
  return text;
}

}  // namespace

SourceLines LinesOf(const Graph& graph, const std::vector<std::string>& nodes) {
  const std::set<int> lines = LineSet(graph, nodes);
  if (lines.empty()) return {};
  return {.first = *lines.begin(), .last = *lines.rbegin()};
}

std::string ToText(const SourceLines& lines) {
  if (lines.first == 0) return "";
  if (lines.first == lines.last) return Concat("(line ", lines.first, ")");
  return Concat("(lines ", lines.first, "-", lines.last, ")");
}

std::string SourceComment(const Graph& graph, const std::vector<std::string>& nodes) {
  const std::set<int> lines = LineSet(graph, nodes);
  const std::vector<std::string_view> source = Split(graph.source, '\n');
  std::string comment;
  size_t quoted = 0;
  for (int line : lines) {
    const auto position = static_cast<size_t>(line) - 1;
    if (position >= source.size()) continue;
    if (quoted == kMaxQuotedLines) {
      comment += Concat("// ... and ", lines.size() - quoted, " more lines\n");
      break;
    }
    comment += Concat("// ", Quote(source[position]), "  (line ", line, ")\n");
    ++quoted;
  }
  if (comment.empty() && !nodes.empty()) {
    comment = "// ";
    for (size_t i = 0; i < nodes.size() && i < kMaxQuotedLines; ++i) {
      comment += Concat(i > 0 ? ", " : "", nodes[i]);
    }
    comment += "\n";
  }
  return comment;
}

}  // namespace mtmc::kernel
