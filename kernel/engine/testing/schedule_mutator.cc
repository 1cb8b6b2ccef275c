// SPDX-License-Identifier: Apache-2.0
#include "kernel/engine/testing/schedule_mutator.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

constexpr std::string_view kKnobs[] = {
    "block", "vector", "items", "tiled", "bm",  "bn",    "bk",    "tm",       "tn",       "tr",
    "tc",    "by_row", "depth", "split", "sum", "cache", "nodes", "template", "precision"};

constexpr std::string_view kTemplates[] = {"pointwise", "contraction",   "row", "scan",
                                           "library",   "split_product", "none"};

constexpr std::string_view kRewrites[] = {
    "reduce_first", "one_element", "zero_difference", "diagonal_product", "reassociate",
    "triangle",     "none"};

constexpr std::string_view kValues[] = {"0",
                                        "1",
                                        "2",
                                        "3",
                                        "4",
                                        "5",
                                        "8",
                                        "16",
                                        "31",
                                        "32",
                                        "64",
                                        "96",
                                        "128",
                                        "256",
                                        "1024",
                                        "4096",
                                        "-1",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "1e9",
                                        "",
                                        "99999999999999999999"};

using Words = std::vector<std::string>;

class Mutation {
 public:
  Mutation(const std::string& text, std::mt19937& random) : random_(random) {
    for (std::string_view line : Split(text, '\n')) {
      const std::vector<std::string_view> words = SplitWords(line);
      if (!words.empty()) lines_.emplace_back(words.begin(), words.end());
    }
  }

  void Run() {
    if (lines_.empty()) return;
    Words& line = lines_[Below(lines_.size())];
    switch (Below(10)) {
      case 0:
        line.erase(line.begin() + static_cast<std::ptrdiff_t>(Below(line.size())));
        break;
      case 1:
        line.push_back(line[Below(line.size())]);
        break;
      case 2:
        std::swap(line, lines_[Below(lines_.size())]);
        break;
      case 3:
        line[Below(line.size())] = Concat("template=", Any(kTemplates));
        break;
      case 4:
        return MoveNode(line);
      case 5:
        return AddTune(line);
      case 6:
        return AddRewrite(line);
      default:
        return SetKnob(line);
    }
    if (line.empty()) line.emplace_back("group");
  }

  std::string ToText() const {
    std::string text;
    for (const Words& line : lines_) text += Join(line, " ") + "\n";
    return text;
  }

 private:
  size_t Below(size_t limit) { return random_() % std::max<size_t>(limit, 1); }

  template <typename List>
  std::string Any(const List& list) {
    return std::string(list[Below(std::size(list))]);
  }

  // Mostly one that is there, with a value that is somewhere legal.
  void SetKnob(Words& line) {
    const std::string& chosen = line[Below(line.size())];
    const size_t equals = chosen.find('=');
    const bool is_new = equals == std::string::npos || Below(4) == 0;
    const std::string key = is_new ? Any(kKnobs) : chosen.substr(0, equals);
    if (key == "nodes" || key == "template") return;
    std::erase_if(line, [&key](const std::string& word) { return word.starts_with(key + "="); });
    line.push_back(Concat(key, "=", Any(kValues)));
  }

  void AddTune(const Words& line) {
    if (line.size() < 2) return;
    const std::string name = line[1].substr(0, line[1].find('.'));
    const std::string knob = Any(kKnobs);
    lines_.push_back(
        {"tune", Concat(name, ".", knob, "=", Any(kValues), ",", Any(kValues), ",", Any(kValues))});
  }

  // At a node of the line, or one of its name.
  void AddRewrite(const Words& line) {
    if (line.size() < 2) return;
    std::string node = line[1];
    for (const std::string& word : line) {
      if (word.starts_with("nodes=")) node = word.substr(word.find_last_of("=,") + 1);
    }
    lines_.insert(lines_.begin(), Words{"rewrite", Any(kRewrites), Concat("node=", node)});
  }

  // The nodes of a group in another order, or one of another group among them.
  void MoveNode(Words& line) {
    for (std::string& word : line) {
      if (!word.starts_with("nodes=")) continue;
      const size_t comma = word.rfind(',');
      if (comma != std::string::npos && Below(2) == 0) {
        word = Concat("nodes=", word.substr(comma + 1), ",", word.substr(6, comma - 6));
        continue;
      }
      const Words& other = lines_[Below(lines_.size())];
      if (other.size() > 1) word += "," + other[1];
    }
  }

  std::mt19937& random_;
  std::vector<Words> lines_;
};

}  // namespace

std::string MutateSchedule(const std::string& text, std::mt19937& random) {
  Mutation mutation(text, random);
  const auto count = random() % 4 == 0 ? 3 : 1;
  for (int i = 0; i < count; ++i) mutation.Run();
  return mutation.ToText();
}

}  // namespace mtmc::kernel
