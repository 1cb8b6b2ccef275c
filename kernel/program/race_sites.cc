// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/race_sites.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace mtmc::kernel {
namespace {

using Tokens = std::span<const SourceToken>;
using Names = std::set<std::string_view>;

// More than any kernel needs that a model wrote; an unrolled one has as many stores.
constexpr size_t kMostSites = 256;
// What begins a statement that is no plain one.
const Names kNotPlain = {"asm",     "break",  "case",    "class",         "continue", "default",
                         "delete",  "do",     "else",    "enum",          "for",      "goto",
                         "if",      "return", "struct",  "static_assert", "switch",   "template",
                         "throw",   "try",    "typedef", "union",         "using",    "while",
                         "__asm__", "__asm"};
const Names kHeads = {"if", "for", "while", "constexpr"};
const Names kBeforeNames = {"return", "else", "case", "goto", "sizeof", "do"};

bool Is(const SourceToken& token, std::string_view text) { return token.text == text; }

bool IsWord(const SourceToken& token) { return token.kind == SourceToken::Kind::kWord; }

bool Opens(const SourceToken& token) { return Is(token, "(") || Is(token, "["); }

bool Closes(const SourceToken& token) { return Is(token, ")") || Is(token, "]"); }

// Whether one token follows the other without a space, as those of `+=` do.
bool Touch(const SourceToken& first, const SourceToken& second) {
  return first.text.data() + first.text.size() == second.text.data();
}

bool HasPrefix(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// Atomic operations that order nothing else: CUDA's functions, and those of OpenCL 1.2.
bool IsAtomic(Tokens tokens, size_t i) {
  if (!IsWord(tokens[i]) || i + 1 >= tokens.size() || !Is(tokens[i + 1], "(")) return false;
  const std::string_view name = tokens[i].text;
  if (HasPrefix(name, "atomic_")) {
    return !HasPrefix(name, "atomic_fetch") && !HasPrefix(name, "atomic_work_item") &&
           name.find("explicit") == name.npos && name != "atomic_store" && name != "atomic_load" &&
           name != "atomic_ref" && name != "atomic_init" && name != "atomic_exchange";
  }
  return HasPrefix(name, "atom_") ||
         (HasPrefix(name, "atomic") && name.size() > 6 && name[6] >= 'A' && name[6] <= 'Z');
}

bool HasAtomic(Tokens tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (IsAtomic(tokens, i)) return true;
  }
  return false;
}

bool HasWord(Tokens tokens, std::string_view word) {
  return std::any_of(tokens.begin(), tokens.end(),
                     [&](const SourceToken& token) { return Is(token, word); });
}

// Number of the only `=` outside of brackets; absent where there is none, another one, or a comma.
std::optional<size_t> FindAssignment(Tokens tokens) {
  std::optional<size_t> found;
  int depth = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (Opens(tokens[i])) ++depth;
    if (Closes(tokens[i])) --depth;
    if (depth > 0) continue;
    if (Is(tokens[i], ",") || (Is(tokens[i], "?") && !found)) return std::nullopt;
    if (!Is(tokens[i], "=")) continue;
    const bool is_compared =
        (i + 1 < tokens.size() && Is(tokens[i + 1], "=") && Touch(tokens[i], tokens[i + 1])) ||
        (i > 0 && Touch(tokens[i - 1], tokens[i]) &&
         std::string_view("=!<>").find(tokens[i - 1].text) != std::string_view::npos);
    if (is_compared && !found) return std::nullopt;
    if (is_compared) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

bool IsDeclaration(Tokens target) {
  for (size_t i = 0; i + 1 < target.size(); ++i) {
    if (IsWord(target[i]) && IsWord(target[i + 1])) return true;
  }
  return target.size() > 1 && IsWord(target[0]) && (Is(target[1], "*") || Is(target[1], "&"));
}

// A store that a statement is.
struct Store {
  // Without the operator of `+=`.
  Tokens target;
  Tokens value;
  std::string_view compound;
  // The pointer parameter through which it goes; empty where it is another one.
  std::string_view base;
};

class Finder {
 public:
  Finder(const Program& program, const LexedSource& source, const KernelSignature& kernel)
      : program_(program), source_(source), kernel_(kernel), tokens_(Body()) {
    for (size_t i = 0; i + 2 < tokens_.size(); ++i) {
      const bool is_array = IsWord(tokens_[i]) && !kBeforeNames.contains(tokens_[i].text) &&
                            IsWord(tokens_[i + 1]) && Is(tokens_[i + 2], "[");
      if (is_array) local_arrays_.insert(tokens_[i + 1].text);
      if (i > 0 && IsWord(tokens_[i]) && (IsWord(tokens_[i - 1]) || Is(tokens_[i - 1], "*")))
        declared_.insert(tokens_[i].text);
    }
  }

  std::vector<RaceSite> Find() {
    if (HasChoices()) return {};
    NoteAll();
    return IsShared() ? std::move(sites_) : std::vector<RaceSite>();
  }

 private:
  void NoteAll() {
    struct Open {
      bool is_code = true;
      bool is_head = false;
    };

    std::vector<Open> open = {{}};
    bool is_start = true;
    bool is_block_level = true;
    for (size_t i = 0; i < tokens_.size() && sites_.size() < kMostSites;) {
      const SourceToken& token = tokens_[i];
      if (is_start && open.back().is_code) {
        const size_t end = EndOfPlain(i);
        if (end > i) {
          i = Note(i, end, is_block_level);
          is_block_level = true;
          continue;
        }
      }
      is_start = is_block_level = false;
      if (Is(token, "{")) {
        open.push_back({.is_code = i == 0 || BeginsCode(tokens_[i - 1])});
        is_start = is_block_level = open.back().is_code;
      } else if (Is(token, "(") || Is(token, "[")) {
        const bool is_head = i > 0 && kHeads.contains(tokens_[i - 1].text);
        open.push_back({.is_code = false, .is_head = is_head});
      } else if (Is(token, "}") || Is(token, ")") || Is(token, "]")) {
        if (open.size() == 1) return;
        is_start = Is(token, "}") ? true : open.back().is_head;
        is_block_level = Is(token, "}");
        open.pop_back();
      } else if (Is(token, ";")) {
        is_start = is_block_level = true;
      } else if (Is(token, "else") || Is(token, "do")) {
        is_start = true;
      }
      ++i;
    }
  }

  // Whether blocks may see what others write: by an atomic operation, or since it reads what it
  // writes.
  bool IsShared() const {
    if (HasAtomic(tokens_)) return true;
    for (const KernelParameter& each : kernel_.parameters) {
      if (!each.is_pointer || each.is_const) continue;
      const auto uses =
          std::count_if(tokens_.begin(), tokens_.end(),
                        [&](const SourceToken& token) { return Is(token, each.name); });
      if (uses > std::count(stored_.begin(), stored_.end(), each.name)) return true;
      for (const KernelParameter& other : kernel_.parameters) {
        if (&other != &each && other.is_pointer && MayBeOne(each.name, other.name)) return true;
      }
    }
    return false;
  }

  size_t PlaceOf(const SourceToken& token) const {
    return static_cast<size_t>(token.text.data() - source_.spliced().data());
  }

  // Those of the kernel's body; none where that has no end.
  Tokens Body() const {
    if (kernel_.body_end == 0) return {};
    const Tokens all(source_.tokens());
    const auto find = [&](size_t place) {
      return std::find_if(all.begin(), all.end(),
                          [&](const SourceToken& token) { return PlaceOf(token) >= place; });
    };
    return {find(kernel_.body), find(kernel_.body_end)};
  }

  // Between the braces of the body, both among the source's tokens.
  bool HasChoices() const {
    if (tokens_.empty()) return true;
    const int first = (tokens_.data() - 1)->line;
    const int last = (tokens_.data() + tokens_.size())->line;
    return std::any_of(source_.directives().begin(), source_.directives().end(),
                       [&](const SourceDirective& directive) {
                         const bool is_inside = directive.line >= first && directive.line <= last;
                         return is_inside && directive.name != "pragma";
                       });
  }

  static bool BeginsCode(const SourceToken& before) {
    return Is(before, ")") || Is(before, "{") || Is(before, "}") || Is(before, ";") ||
           Is(before, "else") || Is(before, "do");
  }

  // Number of the semicolon of a plain statement that begins at `i`; `i` where it is none.
  size_t EndOfPlain(size_t i) const {
    if (i >= tokens_.size() || kNotPlain.contains(tokens_[i].text)) return i;
    int depth = 0;
    for (size_t j = i; j < tokens_.size(); ++j) {
      if (Opens(tokens_[j])) ++depth;
      if (Closes(tokens_[j]) && --depth < 0) return i;
      if (Is(tokens_[j], "{") || Is(tokens_[j], "}") || Is(tokens_[j], ":")) return i;
      if (Is(tokens_[j], ";") && depth == 0) return j;
    }
    return i;
  }

  std::optional<Store> StoreOf(Tokens statement) const {
    const std::optional<size_t> at = FindAssignment(statement);
    if (!at || *at == 0 || HasAtomic(statement)) return std::nullopt;
    Store store{.target = statement.first(*at), .value = statement.subspan(*at + 1)};
    const SourceToken& before = statement[*at - 1];
    const bool is_compound =
        Touch(before, statement[*at]) &&
        std::string_view("+-*/%&|^").find(before.text) != std::string_view::npos;
    if (is_compound) {
      store.compound = before.text;
      store.target = statement.first(*at - 1);
    }
    if (store.target.empty() || store.value.empty() || IsDeclaration(store.target))
      return std::nullopt;
    const bool is_memory = Is(store.target.front(), "*") || HasWord(store.target, "[");
    if (!is_memory || ReachesLocal(store.target)) return std::nullopt;
    // What is written twice must mean the same twice.
    const bool has_effects = HasWord(store.target, "(") || HasSteps(store.target);
    if (is_compound && has_effects) return std::nullopt;
    store.base = BaseOf(store.target);
    return store;
  }

  static bool HasSteps(Tokens tokens) {
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      const bool is_step = Is(tokens[i], tokens[i + 1].text) && Touch(tokens[i], tokens[i + 1]) &&
                           (Is(tokens[i], "+") || Is(tokens[i], "-"));
      if (is_step) return true;
    }
    return false;
  }

  // Whether it goes to an array of this thread or block.
  bool ReachesLocal(Tokens target) const {
    int depth = 0;
    for (const SourceToken& token : target) {
      if (Is(token, "[")) ++depth;
      if (Is(token, "]")) --depth;
      if (depth == 0 && local_arrays_.contains(token.text)) return true;
    }
    return false;
  }

  // The pointer parameter that is the first word of `tokens`, or behind `*`, `&` and brackets.
  std::string_view BaseOf(Tokens tokens) const {
    for (const SourceToken& token : tokens) {
      if (!IsWord(token)) continue;
      const auto found = std::find_if(
          kernel_.parameters.begin(), kernel_.parameters.end(), [&](const KernelParameter& each) {
            return each.is_pointer && each.is_global && each.name == token.text;
          });
      return found == kernel_.parameters.end() ? std::string_view() : token.text;
    }
    return {};
  }

  // Whether a statement touches memory that nothing but fences brings into an order with that of
  // the parameter `base`, which it does not read.
  bool IsElsewhere(Tokens statement, std::string_view base) const {
    if (HasWord(statement, base)) return false;
    std::string_view other;
    for (size_t i = 0; i + 1 < statement.size(); ++i) {
      const bool is_call = IsWord(statement[i]) && Is(statement[i + 1], "(");
      if (!is_call) continue;
      if (!IsAtomic(statement, i) || !other.empty()) return false;
      other = BaseOf(statement.subspan(i + 1));
      if (other.empty() && !IsOfFile(statement.subspan(i + 2))) return false;
      if (other.empty()) return true;
    }
    if (other.empty()) {
      const std::optional<Store> store = StoreOf(statement);
      if (!store) return false;
      other = store->base;
    }
    return !other.empty() && !MayBeOne(base, other);
  }

  // Whether the first word is a variable outside of the kernel.
  bool IsOfFile(Tokens tokens) const {
    for (const SourceToken& token : tokens) {
      if (IsWord(token))
        return program_.dialect == Dialect::kCuda && !declared_.contains(token.text);
    }
    return false;
  }

  // Whether some launch passes one tensor for both parameters.
  bool MayBeOne(std::string_view first, std::string_view second) const {
    const auto number = [&](std::string_view name) {
      size_t i = 0;
      while (kernel_.parameters[i].name != name) ++i;
      return i;
    };
    const size_t a = number(first), b = number(second);
    for (const Step& step : program_.steps) {
      const Launch* launch = std::get_if<Launch>(&step);
      if (!launch || launch->kernel != kernel_.name) continue;
      if (launch->arguments.size() <= std::max(a, b)) return true;
      const auto* x = std::get_if<std::string>(&launch->arguments[a].value);
      const auto* y = std::get_if<std::string>(&launch->arguments[b].value);
      if (!x || !y || *x == *y) return true;
    }
    return first == second;
  }

  // Adds the site of the statement from `i` to its semicolon `end`, if it is one; returns the
  // number of the token behind what is dealt with.
  size_t Note(size_t i, size_t end, bool is_block_level) {
    const Tokens statement = tokens_.subspan(i, end - i);
    RaceSite site{.begin = PlaceOf(tokens_[i]), .end = PlaceOf(tokens_[end]) + 1};
    if (statement.empty()) return end + 1;
    if (HasAtomic(statement)) {
      const std::optional<size_t> at = FindAssignment(statement);
      site.is_declaration = IsDeclaration(at ? statement.first(*at) : statement);
      sites_.push_back(site);
      return end + 1;
    }
    const std::optional<Store> store = StoreOf(statement);
    if (!store) return end + 1;
    if (store->compound.empty()) stored_.push_back(store->base);
    site.kind = RaceSite::Kind::kStore;
    site.target = Text(store->target);
    site.value = store->compound.empty() ? Text(store->value)
                                         : site.target + " " + std::string(store->compound) + " (" +
                                               Text(store->value) + ")";
    const size_t next = EndOfPlain(end + 1);
    const bool has_address = Is(store->target.back(), "]") || Is(store->target.front(), "*");
    const bool is_unordered = is_block_level && !store->base.empty() && has_address &&
                              next > end + 1 &&
                              IsElsewhere(tokens_.subspan(end + 1, next - end - 1), store->base);
    if (!is_unordered) {
      sites_.push_back(std::move(site));
      return end + 1;
    }
    const std::optional<Store> other = StoreOf(tokens_.subspan(end + 1, next - end - 1));
    if (other && other->compound.empty()) stored_.push_back(other->base);
    site.kind = RaceSite::Kind::kUnorderedStore;
    site.next_end = PlaceOf(tokens_[next]) + 1;
    sites_.push_back(std::move(site));
    return next + 1;
  }

  std::string Text(Tokens tokens) const {
    const size_t begin = PlaceOf(tokens.front());
    const size_t end = PlaceOf(tokens.back()) + tokens.back().text.size();
    return std::string(source_.spliced().substr(begin, end - begin));
  }

  const Program& program_;
  const LexedSource& source_;
  const KernelSignature& kernel_;
  const Tokens tokens_;
  Names local_arrays_;
  Names declared_;
  std::vector<RaceSite> sites_;
  // Parameters through which plain stores go, each as often as there is one.
  std::vector<std::string_view> stored_;
};

}  // namespace

std::vector<RaceSite> FindRaceSites(const Program& program, const LexedSource& source,
                                    const KernelSignature& kernel) {
  return Finder(program, source, kernel).Find();
}

}  // namespace mtmc::kernel
