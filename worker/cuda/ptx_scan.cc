// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/ptx_scan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"

namespace mtmc::worker {
namespace {

// NVRTC's registers are defined before their uses but for loops, so few passes settle
// them; a text that needs more was written to be slow.
constexpr int kMaxPasses = 64;

using Token = std::string_view;
using Tokens = std::span<const Token>;

bool IsWordByte(char c) {
  return c == '_' || c == '$' || c == '%' || c == '.' ||
         absl::ascii_isalnum(static_cast<unsigned char>(c));
}

// Words keep their dots and `::`, as in `ld.global.L2::128B`; a string keeps its quotes.
// Absent where ptxas might see something else: preprocessor lines, escapes, no end.
std::optional<std::vector<Token>> Tokenize(std::string_view ptx) {
  std::vector<Token> tokens;
  for (size_t at = 0; at < ptx.size();) {
    const std::string_view rest = ptx.substr(at);
    size_t length = 1;
    if (absl::ascii_isspace(static_cast<unsigned char>(rest.front()))) {
      // Nothing.
    } else if (rest.starts_with("//")) {
      length = std::min(rest.find('\n'), rest.size());
    } else if (rest.starts_with("/*")) {
      const size_t end = rest.find("*/", 2);
      if (end == std::string_view::npos) return std::nullopt;
      length = end + 2;
    } else if (rest.front() == '"') {
      const size_t end = rest.find_first_of("\"\\\n", 1);
      if (end == std::string_view::npos || rest[end] != '"') return std::nullopt;
      length = end + 1;
      tokens.push_back(rest.substr(0, length));
    } else if (IsWordByte(rest.front())) {
      while (length < rest.size() && (IsWordByte(rest[length]) || rest.substr(length, 2) == "::" ||
                                      (rest[length] == ':' && rest[length - 1] == ':'))) {
        ++length;
      }
      tokens.push_back(rest.substr(0, length));
    } else if (rest.front() == '#' || rest.front() == '\\' || rest.front() == '\0') {
      return std::nullopt;
    } else {
      tokens.push_back(rest.substr(0, 1));
    }
    at += length;
  }
  return tokens;
}

// `%v` of `%v.x`; empty for what names nothing: numbers, modifiers, punctuation.
std::string_view NameIn(std::string_view word) {
  const char first = word.front();
  if (!IsWordByte(first) || first == '.' ||
      absl::ascii_isdigit(static_cast<unsigned char>(first))) {
    return {};
  }
  return word.substr(0, word.find('.'));
}

bool Opens(std::string_view text) { return text == "(" || text == "[" || text == "{"; }

bool Closes(std::string_view text) { return text == ")" || text == "]" || text == "}"; }

struct Statement {
  Tokens tokens;
  // Counts the functions; 0 outside of all.
  size_t function = 0;
};

// Statements in order. Headers of functions and newline-terminated directives
// (`.version`) become part of some statement that begins with a dot.
class StatementSplitter {
 public:
  explicit StatementSplitter(Tokens tokens) : tokens_(tokens) {}

  std::vector<Statement> Run() {
    for (size_t i = 0; i < tokens_.size(); ++i) Step(i);
    End(tokens_.size());
    return std::move(statements_);
  }

  size_t num_functions() const { return num_functions_; }

 private:
  void Step(size_t i) {
    const Token text = tokens_[i];
    if (text == ".entry" || text == ".func") is_header_ = true;
    const bool is_scope =
        (text == "{" || text == "}") && depth_ == 0 && (i == begin_ || is_header_);
    if (text == ";") {
      End(i);
    } else if (is_scope) {
      const bool is_body = is_header_ && text == "{";
      End(i);
      if (is_body && scopes_ == 0) ++num_functions_;
      if (text == "{") ++scopes_;
      if (text == "}" && scopes_ > 0) --scopes_;
    } else if (Opens(text)) {
      ++depth_;
    } else if (Closes(text) && depth_ > 0) {
      --depth_;
    } else if (text == ":" && i == begin_ + 1) {
      // The label's instruction begins.
      begin_ = i + 1;
    }
  }

  void End(size_t i) {
    if (i > begin_) {
      statements_.push_back({.tokens = tokens_.subspan(begin_, i - begin_),
                             .function = scopes_ > 0 ? num_functions_ : 0});
    }
    begin_ = i + 1;
    depth_ = 0;
    is_header_ = false;
  }

  const Tokens tokens_;
  std::vector<Statement> statements_;
  size_t num_functions_ = 0;
  size_t begin_ = 0;
  // Of brackets inside a statement, and of braces around it.
  int depth_ = 0;
  int scopes_ = 0;
  bool is_header_ = false;
};

// Split at the commas outside all brackets.
std::vector<Tokens> SplitOperands(Tokens tokens) {
  std::vector<Tokens> operands;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (Opens(tokens[i])) ++depth;
    if (Closes(tokens[i])) --depth;
    if (tokens[i] != "," || depth > 0) continue;
    operands.push_back(tokens.subspan(begin, i - begin));
    begin = i + 1;
  }
  operands.push_back(tokens.subspan(begin));
  return operands;
}

bool Mentions(Tokens tokens, Token word) {
  return std::find(tokens.begin(), tokens.end(), word) != tokens.end();
}

class PtxScanner {
 public:
  PtxVariables Run(std::string_view ptx) {
    const auto tokens = Tokenize(ptx);
    if (!tokens) return Unreadable();
    StatementSplitter splitter(*tokens);
    const std::vector<Statement> statements = splitter.Run();
    for (const Statement& statement : statements) Declare(statement.tokens);
    if (result_.declared.empty()) return std::move(result_);
    std::vector<std::set<std::string, std::less<>>> registers(splitter.num_functions() + 1);
    for (int pass = 0; pass < kMaxPasses; ++pass) {
      has_changed_ = false;
      for (const Statement& statement : statements) {
        registers_ = &registers[statement.function];
        // Functions could share such a register.
        if (statement.function == 0 && Mentions(statement.tokens, ".reg")) return Unreadable();
        Follow(statement.tokens);
        if (!result_.written.empty()) return std::move(result_);
      }
      if (!has_changed_) return std::move(result_);
    }
    return Unreadable();
  }

 private:
  static PtxVariables Unreadable() {
    return {.declared = {}, .written = "global memory", .statement = "text that cannot be read"};
  }

  // `.global .align 4 .b8 a[4] = {...}, b;`
  void Declare(Tokens statement) {
    if (statement.front().front() != '.') return;
    bool is_global = false;
    bool is_initializer = false;
    int depth = 0;
    for (const Token& token : statement) {
      if (token == ".global") is_global = true;
      if (Opens(token)) ++depth;
      if (Closes(token)) --depth;
      if (depth == 0 && (token == "=" || token == ",")) is_initializer = token == "=";
      const std::string_view name = NameIn(token);
      if (is_global && depth == 0 && !is_initializer && !name.empty())
        result_.declared.emplace(name);
    }
  }

  void Follow(Tokens statement) {
    if (statement.front().front() == '.') return CheckDeclaration(statement);
    Tokens rest = statement;
    if (rest.front() == "@") {
      const size_t guard = rest.size() > 1 && rest[1] == "!" ? 3 : 2;
      if (rest.size() <= guard || IsAddress(rest.first(guard))) return Refuse(statement);
      rest = rest.subspan(guard);
    }
    const std::string_view instruction = rest.front();
    const std::string_view opcode = instruction.substr(0, instruction.find('.'));
    const std::vector<Tokens> operands = SplitOperands(rest.subspan(1));
    const bool is_mentioned = std::any_of(operands.begin(), operands.end(),
                                          [&](Tokens operand) { return IsAddress(operand); });
    if (!is_mentioned) return;
    if (opcode == "ld" || opcode == "ldu") return FollowLoad(statement, operands);
    FollowMove(statement, opcode, instruction, operands);
  }

  // Names no variable but those that it declares.
  void CheckDeclaration(Tokens statement) {
    const bool is_declaration = Mentions(statement, ".global");
    int depth = 0;
    bool is_initializer = false;
    for (const Token& token : statement) {
      if (token == ".attribute" && is_declaration) return Refuse(statement);
      if (Opens(token)) ++depth;
      if (Closes(token)) --depth;
      if (depth == 0 && (token == "=" || token == ",")) is_initializer = token == "=";
      const bool is_own_name = is_declaration && depth == 0 && !is_initializer;
      if (!is_own_name && IsAddress(Tokens(&token, 1))) return Refuse(statement);
    }
  }

  // `ld.global.f32 %f1, [%rd1+4];` What is loaded is no address: no initial value is.
  void FollowLoad(Tokens statement, const std::vector<Tokens>& operands) {
    for (size_t i = 1; i < operands.size(); ++i) {
      const Tokens operand = operands[i];
      const bool is_place = i == 1 && !operand.empty() && operand.front() == "[";
      if (!is_place && IsAddress(operand)) return Refuse(statement);
    }
  }

  void FollowMove(Tokens statement, std::string_view opcode, std::string_view instruction,
                  const std::vector<Tokens>& operands) {
    struct Rule {
      std::string_view opcode;
      // Which operands may be an address, by bits from the first source on, and how
      // many of them at once.
      unsigned places;
      int max_addresses;
    };

    constexpr std::array<Rule, 6> kRules = {{{"mov", 1, 1},
                                             {"cvta", 1, 1},
                                             {"add", 3, 1},
                                             {"sub", 1, 1},
                                             {"mad", 4, 1},
                                             {"selp", 3, 2}}};
    const auto rule = std::find_if(kRules.begin(), kRules.end(),
                                   [&](const Rule& r) { return r.opcode == opcode; });
    // A carry tells about an address; half an address is none.
    const bool is_whole = instruction.find(".cc") == std::string_view::npos &&
                          (instruction.ends_with("64") || instruction.starts_with("mad.wide."));
    if (rule == kRules.end() || operands.size() < 2) return Refuse(statement);
    int addresses = 0;
    for (size_t i = 1; i < operands.size(); ++i) {
      if (!IsAddress(operands[i])) continue;
      const bool is_allowed =
          is_whole && i <= 3 && (rule->places >> (i - 1) & 1U) != 0 && operands[i].front() != "{";
      if (!is_allowed || ++addresses > rule->max_addresses) return Refuse(statement);
    }
    // Only the destination was mentioned.
    if (addresses == 0) return;
    if (operands[0].size() != 1) return Refuse(statement);
    has_changed_ |= registers_->emplace(NameIn(operands[0][0])).second;
  }

  // Whether `tokens` mention a variable or a register that may hold an address.
  bool IsAddress(Tokens tokens) const {
    return std::any_of(tokens.begin(), tokens.end(), [&](const Token& token) {
      const std::string_view name = NameIn(token);
      return !name.empty() && (result_.declared.contains(name) || registers_->contains(name));
    });
  }

  void Refuse(Tokens statement) {
    std::string text;
    for (const Token& token : statement) {
      text.append(text.empty() ? "" : " ").append(token);
      if (text.size() > 200) break;
    }
    result_.statement = std::move(text);
    for (const Token& token : statement) {
      if (result_.declared.contains(NameIn(token))) result_.written = NameIn(token);
    }
    if (result_.written.empty()) result_.written = *result_.declared.begin();
  }

  PtxVariables result_;
  // Of the function at hand: those that may hold the address of a variable.
  std::set<std::string, std::less<>>* registers_ = nullptr;
  bool has_changed_ = false;
};

}  // namespace

PtxVariables ScanPtx(std::string_view ptx) { return PtxScanner().Run(ptx); }

}  // namespace mtmc::worker
