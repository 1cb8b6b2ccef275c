// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/descriptor.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/filter/node.h"
#include "common/rpc/error.h"

namespace mtmc::filter {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using NodePtr = std::shared_ptr<const Filter::Node>;

constexpr size_t kMaxBytes = 2048;
constexpr int kMaxDepth = 32;

struct Token {
  enum class Kind { kEnd, kWord, kString, kSign };
  Kind kind = Kind::kEnd;
  std::string text;
  size_t column = 1;
};

bool IsWordCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' ||
         c == '+' || c == '*' || c == '/';
}

absl::Status Refusal(size_t column, const std::string& what) {
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_FILTER",
                        absl::StrCat("filter, column ", column, ": ", what));
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  absl::StatusOr<Token> Next() {
    while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    Token token{.text = "", .column = at_ + 1};
    if (at_ == text_.size()) return token;
    const char c = text_[at_];
    if (c == '"' || c == '\'') return String(c, token);
    if (IsWordCharacter(c)) {
      token.kind = Token::Kind::kWord;
      while (at_ < text_.size() && IsWordCharacter(text_[at_])) token.text += text_[at_++];
      return token;
    }
    token.kind = Token::Kind::kSign;
    token.text = std::string(1, c);
    ++at_;
    const bool may_be_two = c == '<' || c == '>' || c == '!';
    if (may_be_two && at_ < text_.size() && text_[at_] == '=') token.text += text_[at_++];
    return token;
  }

 private:
  absl::StatusOr<Token> String(char quote, Token token) {
    token.kind = Token::Kind::kString;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == quote) {
        ++at_;
        return token;
      }
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      token.text += text_[at_];
    }
    return Refusal(token.column, "the quotation has no end");
  }

  const std::string_view text_;
  size_t at_ = 0;
};

std::optional<Relation> RelationOf(const std::string& sign) {
  if (sign == "=") return Relation::kEqual;
  if (sign == "!=") return Relation::kUnequal;
  if (sign == "<") return Relation::kLess;
  if (sign == "<=") return Relation::kLessOrEqual;
  if (sign == ">") return Relation::kGreater;
  if (sign == ">=") return Relation::kGreaterOrEqual;
  if (sign == ":") return Relation::kHas;
  return std::nullopt;
}

std::string FieldNames(const Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return absl::StrJoin(names, ", ");
}

// `Job.EndReason` begins its enumerators with END_REASON_.
std::string EnumPrefix(const EnumDescriptor& type) {
  std::string prefix;
  for (const char c : type.name()) {
    const bool is_upper = absl::ascii_isupper(static_cast<unsigned char>(c));
    if (is_upper && !prefix.empty()) prefix += '_';
    prefix += absl::ascii_toupper(static_cast<unsigned char>(c));
  }
  return prefix + "_";
}

std::optional<int64_t> EnumeratorOf(const EnumDescriptor& type, const std::string& word) {
  const std::string upper = absl::AsciiStrToUpper(word);
  for (const std::string& name : {upper, absl::StrCat(EnumPrefix(type), upper)}) {
    if (const auto* value = type.FindValueByName(name)) return value->number();
  }
  return std::nullopt;
}

std::string EnumWords(const EnumDescriptor& type) {
  std::vector<std::string> words;
  const std::string prefix = EnumPrefix(type);
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string& name = type.value(i)->name();
    words.push_back(absl::StartsWith(name, prefix) ? name.substr(prefix.size()) : name);
  }
  return absl::StrJoin(words, ", ");
}

bool IsOrdered(Relation relation) {
  return relation != Relation::kEqual && relation != Relation::kUnequal &&
         relation != Relation::kHas;
}

Pattern PatternOf(const Token& token) {
  Pattern pattern{.text = token.text};
  if (absl::EndsWith(pattern.text, "*")) {
    pattern.is_open_behind = true;
    pattern.text.pop_back();
  }
  if (absl::StartsWith(pattern.text, "*")) {
    pattern.is_open_before = true;
    pattern.text.erase(0, 1);
  }
  return pattern;
}

class Parser {
 public:
  Parser(std::string_view text, const Descriptor& type) : lexer_(text), type_(type) {}

  absl::StatusOr<NodePtr> Parse() {
    MTMC_RETURN_IF_ERROR(Advance());
    MTMC_ASSIGN_OR_RETURN(NodePtr root, And(0));
    if (next_.kind != Token::Kind::kEnd) {
      return Refusal(next_.column, absl::StrCat("\"", next_.text,
                                                "\" stands where AND, OR or the "
                                                "end is expected"));
    }
    return root;
  }

 private:
  absl::Status Advance() {
    MTMC_ASSIGN_OR_RETURN(next_, lexer_.Next());
    return absl::OkStatus();
  }

  bool IsAt(Token::Kind kind, const char* text) const {
    return next_.kind == kind && next_.text == text;
  }

  absl::StatusOr<NodePtr> And(int depth) {
    return Chain("AND", Filter::Node::Kind::kAnd, depth, &Parser::Or);
  }

  // Binds closer than AND, as proposal 160 has it.
  absl::StatusOr<NodePtr> Or(int depth) {
    return Chain("OR", Filter::Node::Kind::kOr, depth, &Parser::Term);
  }

  absl::StatusOr<NodePtr> Chain(const char* word, Filter::Node::Kind kind, int depth,
                                absl::StatusOr<NodePtr> (Parser::*part)(int)) {
    auto chain = std::make_shared<Filter::Node>();
    chain->kind = kind;
    while (true) {
      MTMC_ASSIGN_OR_RETURN(NodePtr child, (this->*part)(depth));
      chain->children.push_back(std::move(child));
      if (!IsAt(Token::Kind::kWord, word)) break;
      MTMC_RETURN_IF_ERROR(Advance());
    }
    if (chain->children.size() == 1) return std::move(chain->children.front());
    return NodePtr(std::move(chain));
  }

  absl::StatusOr<NodePtr> Term(int depth) {
    if (depth > kMaxDepth) {
      return Refusal(next_.column, absl::StrCat("nested deeper than ", kMaxDepth));
    }
    if (IsAt(Token::Kind::kWord, "NOT")) {
      MTMC_RETURN_IF_ERROR(Advance());
      auto node = std::make_shared<Filter::Node>();
      node->kind = Filter::Node::Kind::kNot;
      MTMC_ASSIGN_OR_RETURN(NodePtr child, Term(depth + 1));
      node->children.push_back(std::move(child));
      return NodePtr(std::move(node));
    }
    if (!IsAt(Token::Kind::kSign, "(")) return Restriction();
    MTMC_RETURN_IF_ERROR(Advance());
    MTMC_ASSIGN_OR_RETURN(NodePtr inner, And(depth + 1));
    if (!IsAt(Token::Kind::kSign, ")")) return Refusal(next_.column, "\")\" is missing");
    MTMC_RETURN_IF_ERROR(Advance());
    return inner;
  }

  absl::StatusOr<NodePtr> Restriction() {
    if (next_.kind != Token::Kind::kWord) {
      return Refusal(next_.column, "a field, NOT or \"(\" is expected");
    }
    auto node = std::make_shared<Filter::Node>();
    Comparison& comparison = node->comparison;
    MTMC_ASSIGN_OR_RETURN(comparison.path, Path(next_));
    MTMC_RETURN_IF_ERROR(Advance());
    const std::optional<Relation> relation =
        next_.kind == Token::Kind::kSign ? RelationOf(next_.text) : std::nullopt;
    if (!relation) return Refusal(next_.column, "one of = != < <= > >= : is expected");
    comparison.relation = *relation;
    MTMC_RETURN_IF_ERROR(Advance());
    if (next_.kind != Token::Kind::kWord && next_.kind != Token::Kind::kString) {
      return Refusal(next_.column, "a value is expected; other text than words stands in quotes");
    }
    MTMC_ASSIGN_OR_RETURN(comparison.value, ValueOf(*comparison.path.back(), *relation, next_));
    MTMC_RETURN_IF_ERROR(Advance());
    return NodePtr(std::move(node));
  }

  absl::StatusOr<std::vector<const FieldDescriptor*>> Path(const Token& token) const {
    std::vector<const FieldDescriptor*> path;
    const Descriptor* type = &type_;
    size_t begin = 0;
    while (true) {
      const size_t dot = token.text.find('.', begin);
      const std::string name = token.text.substr(begin, dot - begin);
      if (type == nullptr) {
        return Refusal(token.column + begin,
                       absl::StrCat(path.back()->name(), " has no fields that can be named"));
      }
      const FieldDescriptor* field = type->FindFieldByName(name);
      if (field == nullptr) {
        return Refusal(token.column + begin,
                       absl::StrCat("\"", name, "\" is no field of ", type->name(),
                                    "; it has: ", FieldNames(*type)));
      }
      path.push_back(field);
      if (dot == token.text.npos) return path;
      type = field->is_repeated() ? nullptr : field->message_type();
      begin = dot + 1;
    }
  }

  static absl::StatusOr<Value> ValueOf(const FieldDescriptor& field, Relation relation,
                                       const Token& token) {
    if (relation == Relation::kHas && token.kind == Token::Kind::kWord && token.text == "*") {
      return Value(Anything());
    }
    if (field.is_map()) return Refusal(token.column, OnlyPresence(field));
    if (field.is_repeated() && relation != Relation::kHas) {
      return Refusal(token.column,
                     absl::StrCat(field.name(), " is a list; use ", field.name(), ":VALUE"));
    }
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL:
        return BoolOf(field, relation, token);
      case FieldDescriptor::CPPTYPE_ENUM:
        return EnumOf(field, relation, token);
      case FieldDescriptor::CPPTYPE_STRING:
        return TextOf(field, relation, token);
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return MomentOf(field, token);
      case FieldDescriptor::CPPTYPE_DOUBLE:
      case FieldDescriptor::CPPTYPE_FLOAT:
        return DoubleOf(field, token);
      default:
        return IntegerOf(field, token);
    }
  }

  static std::string OnlyPresence(const FieldDescriptor& field) {
    return absl::StrCat("of ", field.name(), " only ", field.name(), ":* can be asked");
  }

  static absl::StatusOr<Value> BoolOf(const FieldDescriptor& field, Relation relation,
                                      const Token& token) {
    if (IsOrdered(relation)) return Refusal(token.column, NoOrder(field));
    if (token.text == "true") return Value(true);
    if (token.text == "false") return Value(false);
    return Refusal(token.column, absl::StrCat(field.name(), " is true or false"));
  }

  static absl::StatusOr<Value> EnumOf(const FieldDescriptor& field, Relation relation,
                                      const Token& token) {
    if (IsOrdered(relation)) return Refusal(token.column, NoOrder(field));
    const auto number = EnumeratorOf(*field.enum_type(), token.text);
    if (number) return Value(*number);
    return Refusal(token.column, absl::StrCat("\"", token.text, "\" is no ", field.name(),
                                              "; there are: ", EnumWords(*field.enum_type())));
  }

  static absl::StatusOr<Value> TextOf(const FieldDescriptor& field, Relation relation,
                                      const Token& token) {
    if (field.type() == FieldDescriptor::TYPE_BYTES) {
      return Refusal(token.column, OnlyPresence(field));
    }
    if (IsOrdered(relation)) return Refusal(token.column, NoOrder(field));
    return Value(PatternOf(token));
  }

  static absl::StatusOr<Value> IntegerOf(const FieldDescriptor& field, const Token& token) {
    int64_t number = 0;
    if (absl::SimpleAtoi(token.text, &number)) return Value(number);
    return DoubleOf(field, token);
  }

  static absl::StatusOr<Value> DoubleOf(const FieldDescriptor& field, const Token& token) {
    double number = 0;
    // A NaN would make every comparison false without a word.
    if (absl::SimpleAtod(token.text, &number) && number == number) return Value(number);
    return Refusal(token.column, absl::StrCat(field.name(), " is a number"));
  }

  static absl::StatusOr<Value> MomentOf(const FieldDescriptor& field, const Token& token) {
    const std::string& type = field.message_type()->full_name();
    if (type == "google.protobuf.Timestamp") {
      absl::Time time;
      std::string error;
      if (absl::ParseTime(absl::RFC3339_full, token.text, &time, &error)) return Value(time);
      return Refusal(token.column, absl::StrCat(field.name(),
                                                " is a time such as "
                                                "\"2026-11-25T10:00:00Z\""));
    }
    if (type == "google.protobuf.Duration") {
      absl::Duration duration;
      if (absl::ParseDuration(token.text, &duration)) return Value(duration);
      return Refusal(token.column, absl::StrCat(field.name(), " is a duration such as 90s"));
    }
    return Refusal(token.column, absl::StrCat(OnlyPresence(field), "; or name a field of it: ",
                                              FieldNames(*field.message_type())));
  }

  static std::string NoOrder(const FieldDescriptor& field) {
    return absl::StrCat(field.name(), " has no order; use = or !=");
  }

  Lexer lexer_;
  const Descriptor& type_;
  Token next_;
};

}  // namespace

absl::StatusOr<Filter> Filter::Parse(std::string_view text, const Descriptor& type) {
  if (text.size() > kMaxBytes) {
    return Refusal(kMaxBytes, absl::StrCat("longer than ", kMaxBytes, " bytes"));
  }
  if (absl::StripAsciiWhitespace(base::ToAbsl(text)).empty()) return Filter();
  MTMC_ASSIGN_OR_RETURN(NodePtr root, Parser(text, type).Parse());
  return Filter(std::move(root));
}

}  // namespace mtmc::filter
