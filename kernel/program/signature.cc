// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/signature.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "kernel/graph/identifier.h"
#include "kernel/graph/text.h"
#include "kernel/program/source_lexer.h"

namespace mtmc::kernel {
namespace {

using Tokens = std::span<const SourceToken>;
using TokenKind = SourceToken::Kind;

// More parameters than a launch can have.
constexpr size_t kMaxParameters = 256;
// More kernels than a plan can use.
constexpr size_t kMaxKernels = 4096;

bool Is(const SourceToken& token, std::string_view text) { return token.text == text; }

// Index just past the bracket that closes the one at `open`; size() when it is
// missing. Only brackets of the same kind are counted.
size_t SkipBrackets(Tokens tokens, size_t open) {
  const std::string_view opening = tokens[open].text;
  const std::string_view closing = opening == "("   ? ")"
                                   : opening == "[" ? "]"
                                   : opening == "{" ? "}"
                                                    : ">";
  int depth = 0;
  for (size_t i = open; i < tokens.size(); ++i) {
    if (Is(tokens[i], opening)) ++depth;
    if (Is(tokens[i], closing) && --depth == 0) return i + 1;
  }
  return tokens.size();
}

// Splits at commas outside all brackets.
std::vector<Tokens> SplitCommas(Tokens tokens) {
  std::vector<Tokens> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view text = tokens[i].text;
    if (text == "(" || text == "[" || text == "{" || text == "<") ++depth;
    if (text == ")" || text == "]" || text == "}" || text == ">") --depth;
    if (text != "," || depth > 0) continue;
    parts.push_back(tokens.subspan(begin, i - begin));
    begin = i + 1;
  }
  if (!tokens.empty()) parts.push_back(tokens.subspan(begin));
  return parts;
}

std::string Join(Tokens tokens) {
  std::string text;
  for (const SourceToken& token : tokens) Append(text, text.empty() ? "" : " ", token.text);
  return text;
}

std::optional<IntegerExpression> FindExpression(Tokens tokens) {
  absl::StatusOr<IntegerExpression> parsed = IntegerExpression::Parse(Join(tokens));
  if (!parsed.ok()) return std::nullopt;
  return *std::move(parsed);
}

bool IsIntegerWord(std::string_view word) {
  return word == "unsigned" || word == "signed" || word == "long" || word == "short" ||
         word == "int" || word == "char";
}

// `unsigned long int` and `long unsigned` to `unsigned long`.
std::string CanonicalInteger(const std::vector<std::string_view>& words) {
  const auto count = [&](std::string_view word) {
    return std::count(words.begin(), words.end(), word);
  };
  std::string text = count("unsigned") > 0 ? "unsigned " : "";
  if (count("char") > 0) return count("signed") > 0 ? "signed char" : text + "char";
  if (count("short") > 0) return text + "short";
  if (count("long") >= 2) return text + "long long";
  if (count("long") == 1) return text + "long";
  return text + "int";
}

// One parameter, token by token.
class ParameterParser {
 public:
  ParameterParser(Tokens tokens, Dialect dialect) : dialect_(dialect) {
    // A default argument does not matter to a launch.
    const auto equals = std::find_if(tokens.begin(), tokens.end(),
                                     [](const SourceToken& token) { return Is(token, "="); });
    tokens_ = tokens.first(static_cast<size_t>(equals - tokens.begin()));
  }

  // Absent when the parameter cannot be passed by a plan; error() says why.
  std::optional<KernelParameter> Parse() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (Is(tokens_[i], "__attribute__") && i + 1 < tokens_.size() && Is(tokens_[i + 1], "(")) {
        i = SkipBrackets(tokens_, i + 1) - 1;
        continue;
      }
      if (!Accept(tokens_[i])) return std::nullopt;
    }
    return Finish();
  }

  const std::string& error() const { return error_; }

 private:
  bool Accept(const SourceToken& token) {
    const std::string_view text = token.text;
    if (text == "*") {
      ++stars_;
    } else if (text == "[") {
      ++stars_;
    } else if (text == "]" || token.kind == TokenKind::kNumber || text == "volatile" ||
               text == "struct" || text == "__grid_constant__" || text == "typename") {
      // Nothing that a launch depends on.
    } else if (text == "&" || text == "<" || text == ">" || text == "." || text == "(") {
      error_ = "has a reference, template or function type; use pointers and scalars";
      return false;
    } else if (text == "const") {
      if (stars_ == 0) parameter_.is_const = true;
    } else if (text == "__restrict__" || text == "restrict" || text == "__restrict") {
      parameter_.is_restrict = true;
    } else if (text == "__global" || text == "global") {
      parameter_.is_global = true;
    } else if (text == "__constant" || text == "constant") {
      parameter_.is_global = true;
      parameter_.is_const = true;
    } else if (text == "__local" || text == "local") {
      error_ = "is in local memory; declare the array inside the kernel";
      return false;
    } else if (token.kind == TokenKind::kWord || text == "::") {
      words_.push_back(text);
    } else {
      error_ = Concat("is not understood at `", text, "`");
      return false;
    }
    return true;
  }

  std::optional<KernelParameter> Finish() {
    words_.erase(std::remove(words_.begin(), words_.end(), "__private"), words_.end());
    const bool has_name =
        words_.size() >= 2 && words_.back() != "::" && !IsIntegerWord(words_.back());
    if (has_name) {
      parameter_.name = std::string(words_.back());
      words_.pop_back();
    }
    if (words_.empty() || stars_ > 1) {
      error_ = stars_ > 1 ? "is a pointer to a pointer" : "has no type";
      return std::nullopt;
    }
    parameter_.type = Type();
    parameter_.is_pointer = stars_ == 1;
    if (dialect_ == Dialect::kCuda) parameter_.is_global = parameter_.is_pointer;
    if (!parameter_.is_pointer) parameter_.is_const = false;
    return parameter_;
  }

  std::string Type() const {
    if (std::all_of(words_.begin(), words_.end(), IsIntegerWord)) return CanonicalInteger(words_);
    std::string type;
    for (const std::string_view word : words_) type += word;
    return type.substr(0, 5) == "std::" ? type.substr(5) : type;
  }

  const Dialect dialect_;
  Tokens tokens_;
  KernelParameter parameter_;
  int stars_ = 0;
  std::vector<std::string_view> words_;
  std::string error_;
};

// Walks the tokens of a file and reads each kernel's declaration.
class KernelScanner {
 public:
  KernelScanner(std::string_view text, Dialect dialect)
      : lexed_(LexSource(text, dialect)), tokens_(lexed_.tokens()), dialect_(dialect) {
    for (const SourceDirective& directive : lexed_.directives()) {
      has_token_paste_ |= directive.operand.find("##") != std::string_view::npos;
      for (const SourceToken& token : directive.tokens) macro_words_.insert(token.text);
    }
  }

  KernelScan Run() {
    size_t at = 0;
    while (at < tokens_.size() && scan_.kernels.size() < kMaxKernels) at = Step(at);
    return std::move(scan_);
  }

 private:
  enum class Scope { kExternC, kNamespace };

  // Consumes one construct; returns the index after it.
  size_t Step(size_t at) {
    const SourceToken& token = tokens_[at];
    if (IsMark(token)) return ReadKernel(at);
    if (Is(token, "template") && at + 1 < tokens_.size() && Is(tokens_[at + 1], "<")) {
      is_template_ = true;
      return SkipBrackets(tokens_, at + 1);
    }
    if (Is(token, "extern")) {
      is_extern_c_ = at + 1 < tokens_.size() && Is(tokens_[at + 1], "\"C\"");
      const bool is_block = is_extern_c_ && at + 2 < tokens_.size() && Is(tokens_[at + 2], "{");
      if (!is_block) return at + (is_extern_c_ ? 2 : 1);
      scopes_.push_back(Scope::kExternC);
      is_extern_c_ = false;
      return at + 3;
    }
    if (Is(token, "{")) {
      // A namespace may hold kernels, which then have no plain name; any other
      // body may not.
      if (!IsNamespaceAhead(at)) {
        EndDeclaration();
        return SkipBrackets(tokens_, at);
      }
      scopes_.push_back(Scope::kNamespace);
      EndDeclaration();
    } else if (Is(token, "}")) {
      if (!scopes_.empty()) scopes_.pop_back();
      EndDeclaration();
    } else if (Is(token, ";")) {
      EndDeclaration();
    }
    return at + 1;
  }

  bool IsMark(const SourceToken& token) const {
    if (dialect_ == Dialect::kCuda) return Is(token, "__global__");
    return Is(token, "__kernel") || Is(token, "kernel");
  }

  // `namespace {`, `namespace a {` or `namespace a::b {` ends at `brace`.
  bool IsNamespaceAhead(size_t brace) const {
    size_t at = brace;
    while (at > 0 && (Is(tokens_[at - 1], "::") || (tokens_[at - 1].kind == TokenKind::kWord &&
                                                    !Is(tokens_[at - 1], "namespace")))) {
      --at;
    }
    return at > 0 && Is(tokens_[at - 1], "namespace");
  }

  void EndDeclaration() {
    is_template_ = false;
    is_extern_c_ = false;
  }

  bool IsWithin(Scope scope) const {
    return std::find(scopes_.begin(), scopes_.end(), scope) != scopes_.end();
  }

  bool HasCLinkage() const {
    return dialect_ == Dialect::kOpenCl || is_extern_c_ || IsWithin(Scope::kExternC);
  }

  size_t OffsetOf(const SourceToken& token) const {
    return static_cast<size_t>(token.text.data() - lexed_.spliced().data());
  }

  // Of the declaration whose mark stands at `mark`, and its parameters at `end`. Macros may stand
  // before it, so what is its own is known by its words.
  void AddPlainDeclaration(size_t mark, size_t end) {
    if (HasCLinkage() || is_template_ || IsWithin(Scope::kNamespace)) return;
    size_t begin = mark;
    while (const size_t length = SpecifierBefore(begin)) begin -= length;
    PlainDeclaration plain{.begin = OffsetOf(tokens_[begin])};
    for (size_t i = begin; i < end; ++i) {
      if (Is(tokens_[i], "static")) plain.static_word = OffsetOf(tokens_[i]);
    }
    scan_.plain_declarations.push_back(plain);
  }

  // Tokens of the specifier or attribute that ends before `at`; 0 where none does.
  size_t SpecifierBefore(size_t at) const {
    static constexpr std::array<std::string_view, 6> kSpecifiers = {
        "static", "inline", "__inline__", "__forceinline__", "__noinline__", "void"};
    if (at == 0) return 0;
    const std::string_view last = tokens_[at - 1].text;
    if (std::find(kSpecifiers.begin(), kSpecifiers.end(), last) != kSpecifiers.end()) return 1;
    if (last != ")") return 0;
    int depth = 0;
    for (size_t i = at; i-- > 0;) {
      // Of another declaration.
      if (Is(tokens_[i], "{") || Is(tokens_[i], "}") || Is(tokens_[i], ";")) return 0;
      depth += Is(tokens_[i], ")") ? 1 : Is(tokens_[i], "(") ? -1 : 0;
      if (depth == 0) return i > 0 && IsAttribute(tokens_[i - 1].text) ? at - i + 1 : 0;
    }
    return 0;
  }

  // `__global__ ATTRIBUTES void ATTRIBUTES name ( PARAMETERS ) {`.
  size_t ReadKernel(size_t at) {
    KernelSignature signature;
    std::string_view previous_word;
    size_t i = at + 1;
    for (; i < tokens_.size(); ++i) {
      const SourceToken& token = tokens_[i];
      if (Is(token, "{") || Is(token, ";") || Is(token, "}")) return i;
      if (!Is(token, "(")) {
        if (token.kind == TokenKind::kWord) {
          previous_word = token.text;
          signature.line = token.line;
        }
        continue;
      }
      const size_t end = SkipBrackets(tokens_, i);
      if (!IsAttribute(previous_word)) break;
      if (end <= i + 1) return end;
      ReadAttribute(previous_word, tokens_.subspan(i + 1, end - i - 2), signature);
      i = end - 1;
    }
    if (i >= tokens_.size()) return i;
    const size_t end = SkipBrackets(tokens_, i);
    signature.name = std::string(previous_word);
    AddPlainDeclaration(at, i);
    if (IsDeclarationOnly(end)) return end;
    AddKernel(std::move(signature), tokens_.subspan(i + 1, end - i - 2), BodyAt(end));
    return end;
  }

  // Between the braces that open at `at`; empty where none do.
  Tokens BodyAt(size_t at) const {
    if (at >= tokens_.size() || !Is(tokens_[at], "{")) return {};
    return tokens_.subspan(at, SkipBrackets(tokens_, at) - at);
  }

  // Without macros that paste words together, a parameter that the body never names
  // does nothing.
  void FindUses(Tokens body, std::vector<KernelParameter>& parameters) const {
    if (has_token_paste_ || lexed_.is_ambiguous()) return;
    std::set<std::string_view> words;
    for (size_t i = 0; i < body.size(); ++i) {
      const bool is_cast_away = i >= 3 && i + 1 < body.size() && Is(body[i - 1], ")") &&
                                Is(body[i - 2], "void") && Is(body[i - 3], "(") &&
                                Is(body[i + 1], ";");
      if (body[i].kind == TokenKind::kWord && !is_cast_away) words.insert(body[i].text);
    }
    for (KernelParameter& parameter : parameters) {
      parameter.is_used = words.contains(parameter.name) || macro_words_.contains(parameter.name);
    }
  }

  bool IsDeclarationOnly(size_t end) const { return end < tokens_.size() && Is(tokens_[end], ";"); }

  static bool IsAttribute(std::string_view word) {
    return word == "__launch_bounds__" || word == "__cluster_dims__" || word == "__maxnreg__" ||
           word == "__block_size__" || word == "__attribute__" || word == "reqd_work_group_size" ||
           word == "work_group_size_hint" || word == "alignas" || word == "__align__";
  }

  static void ReadAttribute(std::string_view word, Tokens arguments, KernelSignature& signature) {
    if (word == "__launch_bounds__") {
      const std::vector<Tokens> parts = SplitCommas(arguments);
      if (!parts.empty()) signature.max_threads = FindExpression(parts[0]);
      return;
    }
    for (size_t i = 0; i + 1 < arguments.size(); ++i) {
      if (!Is(arguments[i], "reqd_work_group_size") || !Is(arguments[i + 1], "(")) continue;
      const size_t end = SkipBrackets(arguments, i + 1);
      if (end <= i + 2) return;
      const std::vector<Tokens> parts = SplitCommas(arguments.subspan(i + 2, end - i - 3));
      if (parts.size() != 3) return;
      std::array<IntegerExpression, 3> block;
      for (size_t d = 0; d < 3; ++d) {
        const std::optional<IntegerExpression> extent = FindExpression(parts[d]);
        if (!extent) return;
        block.at(d) = *extent;
      }
      signature.required_block = block;
    }
  }

  void AddKernel(KernelSignature signature, Tokens parameters, Tokens body) {
    const bool is_plain = !is_template_;
    signature.has_c_linkage = HasCLinkage();
    const bool is_in_namespace = IsWithin(Scope::kNamespace);
    is_extern_c_ = false;
    is_template_ = false;
    if (!IsIdentifier(signature.name)) {
      return Report(signature.line, "a kernel has no name that is an identifier");
    }
    if (!is_plain) {
      return Report(signature.line, Concat("kernel `", signature.name,
                                           "` is a template; launch a plain kernel that calls it"));
    }
    if (is_in_namespace) {
      return Report(signature.line,
                    Concat("kernel `", signature.name, "` is inside a namespace; move it out"));
    }
    if (!names_.insert(signature.name).second) {
      return Report(signature.line, Concat("kernel `", signature.name, "` is defined twice"));
    }
    if (!ReadParameters(parameters, signature)) return;
    FindUses(body, signature.parameters);
    if (!body.empty()) {
      signature.body = OffsetOf(body.front()) + 1;
      if (body.size() > 1 && Is(body.back(), "}")) signature.body_end = OffsetOf(body.back());
    }
    scan_.kernels.push_back(std::move(signature));
  }

  bool ReadParameters(Tokens tokens, KernelSignature& signature) {
    if (tokens.size() == 1 && Is(tokens[0], "void")) return true;
    const std::vector<Tokens> parts = SplitCommas(tokens);
    if (parts.size() > kMaxParameters) {
      Report(signature.line,
             Concat("kernel `", signature.name, "` has more than ", kMaxParameters, " parameters"));
      return false;
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      ParameterParser parser(parts[i], dialect_);
      std::optional<KernelParameter> parameter = parser.Parse();
      if (!parameter) {
        Report(signature.line,
               Concat("parameter ", i + 1, " of kernel `", signature.name, "` ", parser.error()));
        return false;
      }
      signature.parameters.push_back(*std::move(parameter));
    }
    return true;
  }

  void Report(int line, std::string message) {
    scan_.diagnostics.push_back({.line = line, .message = std::move(message)});
  }

  const LexedSource lexed_;
  const Tokens tokens_;
  const Dialect dialect_;
  // Words that macros may put into a body.
  std::set<std::string_view> macro_words_;
  bool has_token_paste_ = false;
  // Open blocks around the current token.
  std::vector<Scope> scopes_;
  // Of the declaration that is being read.
  bool is_template_ = false;
  bool is_extern_c_ = false;
  std::set<std::string> names_;
  KernelScan scan_;
};

}  // namespace

KernelScan FindKernels(std::string_view text, Dialect dialect) {
  return KernelScanner(text, dialect).Run();
}

}  // namespace mtmc::kernel
