// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/expression.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "common/base/string_view.h"
#include "kernel/graph/identifier.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {

struct IntegerExpression::Node {
  enum class Kind {
    kLiteral,
    kName,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kRemainder,
    kMin,
    kMax,
    kCeilDiv
  };
  using Pointer = std::shared_ptr<const Node>;

  Kind kind = Kind::kLiteral;
  int64_t literal = 0;
  std::string name;
  Pointer left;
  Pointer right;
};

namespace {

using Node = IntegerExpression::Node;

// Recursion of the parser: parentheses, calls and signs.
constexpr int kMaxDepth = 64;
// Bounds the tree, whose left spine grows with every `+`: it is walked and
// destroyed by recursion, 100 bytes of stack a level.
constexpr int kMaxNodes = 512;

struct Function {
  std::string_view name;
  Node::Kind kind;
};

constexpr Function kFunctions[] = {
    {"min", Node::Kind::kMin}, {"max", Node::Kind::kMax}, {"ceil_div", Node::Kind::kCeilDiv}};

std::string_view Symbol(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::kAdd:
      return " + ";
    case Node::Kind::kSubtract:
      return " - ";
    case Node::Kind::kMultiply:
      return "*";
    case Node::Kind::kDivide:
      return "/";
    case Node::Kind::kRemainder:
      return " % ";
    case Node::Kind::kMin:
      return "min";
    case Node::Kind::kMax:
      return "max";
    case Node::Kind::kCeilDiv:
      return "ceil_div";
    default:
      return "";
  }
}

// 1: sums, 2: products, 3: everything that needs no parentheses.
int Precedence(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::kAdd:
    case Node::Kind::kSubtract:
      return 1;
    case Node::Kind::kMultiply:
    case Node::Kind::kDivide:
    case Node::Kind::kRemainder:
      return 2;
    default:
      return 3;
  }
}

unsigned char Byte(char c) { return static_cast<unsigned char>(c); }

// Recursive descent over one expression. The first error wins.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  absl::StatusOr<Node::Pointer> Parse() {
    Node::Pointer node = Sum(0);
    SkipBlanks();
    if (error_.ok() && at_ < text_.size()) Fail("has a stray character");
    if (!error_.ok()) return error_;
    return node;
  }

 private:
  Node::Pointer Sum(int depth) {
    Node::Pointer left = Product(depth);
    while (error_.ok()) {
      if (Take('+')) {
        left = Binary(Node::Kind::kAdd, left, Product(depth));
      } else if (Take('-')) {
        left = Binary(Node::Kind::kSubtract, left, Product(depth));
      } else {
        break;
      }
    }
    return left;
  }

  Node::Pointer Product(int depth) {
    Node::Pointer left = Signed(depth);
    while (error_.ok()) {
      if (Take('*')) {
        left = Binary(Node::Kind::kMultiply, left, Signed(depth));
      } else if (Take('/')) {
        left = Binary(Node::Kind::kDivide, left, Signed(depth));
      } else if (Take('%')) {
        left = Binary(Node::Kind::kRemainder, left, Signed(depth));
      } else {
        break;
      }
    }
    return left;
  }

  Node::Pointer Signed(int depth) {
    if (depth > kMaxDepth) return Fail("is nested too deeply");
    if (!Take('-')) return Primary(depth);
    SkipBlanks();
    if (at_ < text_.size() && absl::ascii_isdigit(Byte(text_[at_]))) return Number(/*sign=*/"-");
    return Binary(Node::Kind::kSubtract, Literal(0), Signed(depth + 1));
  }

  Node::Pointer Primary(int depth) {
    if (depth > kMaxDepth) return Fail("is nested too deeply");
    SkipBlanks();
    if (at_ == text_.size()) return Fail("ends where a value is expected");
    if (Take('(')) {
      Node::Pointer inner = Sum(depth + 1);
      if (error_.ok() && !Take(')')) return Fail("misses a )");
      return inner;
    }
    if (absl::ascii_isdigit(Byte(text_[at_]))) return Number("");
    const std::string_view name = Word();
    if (name.empty()) return Fail("has a stray character");
    if (!IsIdentifier(name)) return Fail("has a name that is too long");
    for (const Function& function : kFunctions) {
      if (name == function.name) return Call(function, depth);
    }
    auto node = std::make_shared<Node>();
    node->kind = Node::Kind::kName;
    node->name = std::string(name);
    return Counted(std::move(node));
  }

  Node::Pointer Call(const Function& function, int depth) {
    if (!Take('(')) return Fail(Concat("misses a ( after ", function.name));
    Node::Pointer left = Sum(depth + 1);
    if (error_.ok() && !Take(',')) return Fail(Concat(function.name, " takes two arguments"));
    if (!error_.ok()) return left;
    Node::Pointer right = Sum(depth + 1);
    if (error_.ok() && !Take(')')) return Fail("misses a )");
    return Binary(function.kind, left, right);
  }

  Node::Pointer Number(std::string_view sign) {
    const size_t begin = at_;
    while (at_ < text_.size() && absl::ascii_isalnum(Byte(text_[at_]))) ++at_;
    const std::optional<int64_t> value =
        FindInteger(Concat(sign, text_.substr(begin, at_ - begin)));
    if (!value) {
      at_ = begin;
      return Fail("has a number that is no 64-bit decimal integer");
    }
    return Literal(*value);
  }

  Node::Pointer Literal(int64_t value) {
    auto node = std::make_shared<Node>();
    node->literal = value;
    return Counted(std::move(node));
  }

  Node::Pointer Binary(Node::Kind kind, Node::Pointer left, Node::Pointer right) {
    if (!error_.ok()) return left;
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->left = std::move(left);
    node->right = std::move(right);
    return Counted(std::move(node));
  }

  Node::Pointer Counted(std::shared_ptr<Node> node) {
    if (++nodes_ > kMaxNodes) return Fail("is too long");
    return node;
  }

  // Keeps the first error; returns some node so that callers can go on to their
  // own check of error_.
  Node::Pointer Fail(std::string_view problem) {
    if (error_.ok()) {
      error_ = absl::InvalidArgumentError(
          Concat("expression ", Quoted(text_), " ", problem, " at column ", at_ + 1));
    }
    return std::make_shared<Node>();
  }

  std::string_view Word() {
    const size_t begin = at_;
    while (at_ < text_.size() && (text_[at_] == '_' || absl::ascii_isalnum(Byte(text_[at_]))))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }

  void SkipBlanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  bool Take(char c) {
    SkipBlanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  const std::string_view text_;
  size_t at_ = 0;
  int nodes_ = 0;
  absl::Status error_;
};

absl::StatusOr<int64_t> Overflow() { return absl::InvalidArgumentError("does not fit 64 bits"); }

absl::StatusOr<int64_t> Divide(Node::Kind kind, int64_t left, int64_t right) {
  if (right == 0) return absl::InvalidArgumentError("divides by zero");
  if (right == -1) {
    if (kind == Node::Kind::kRemainder) return 0;
    if (left == std::numeric_limits<int64_t>::min()) return Overflow();
    return -left;
  }
  if (kind == Node::Kind::kRemainder) return left % right;
  if (kind == Node::Kind::kDivide) return left / right;
  // Rounds towards plus infinity: the quotient is raised where it was cut down.
  const bool is_cut_down = left % right != 0 && ((left < 0) == (right < 0));
  return left / right + (is_cut_down ? 1 : 0);
}

absl::StatusOr<int64_t> Apply(Node::Kind kind, int64_t left, int64_t right) {
  int64_t result = 0;
  switch (kind) {
    case Node::Kind::kAdd:
      if (__builtin_add_overflow(left, right, &result)) return Overflow();
      return result;
    case Node::Kind::kSubtract:
      if (__builtin_sub_overflow(left, right, &result)) return Overflow();
      return result;
    case Node::Kind::kMultiply:
      if (__builtin_mul_overflow(left, right, &result)) return Overflow();
      return result;
    case Node::Kind::kMin:
      return std::min(left, right);
    case Node::Kind::kMax:
      return std::max(left, right);
    default:
      return Divide(kind, left, right);
  }
}

absl::StatusOr<int64_t> EvaluateNode(const Node& node,
                                     const std::map<std::string, int64_t, std::less<>>& bindings) {
  if (node.kind == Node::Kind::kLiteral) return node.literal;
  if (node.kind == Node::Kind::kName) {
    const auto it = bindings.find(node.name);
    if (it != bindings.end()) return it->second;
    return absl::InvalidArgumentError(Concat("uses the unknown name ", node.name));
  }
  const absl::StatusOr<int64_t> left = EvaluateNode(*node.left, bindings);
  if (!left.ok()) return left;
  const absl::StatusOr<int64_t> right = EvaluateNode(*node.right, bindings);
  if (!right.ok()) return right;
  return Apply(node.kind, *left, *right);
}

void CollectNames(const Node& node, std::set<std::string>& names) {
  if (node.kind == Node::Kind::kName) names.insert(node.name);
  if (node.left) CollectNames(*node.left, names);
  if (node.right) CollectNames(*node.right, names);
}

// `strength` is the weakest precedence that may stand here unparenthesised.
void Print(const Node& node, int strength, std::string& out) {
  if (node.kind == Node::Kind::kLiteral) {
    Append(out, node.literal);
    return;
  }
  if (node.kind == Node::Kind::kName) {
    out += node.name;
    return;
  }
  const int precedence = Precedence(node.kind);
  const bool is_call = precedence == 3;
  const bool has_parentheses = !is_call && precedence < strength;
  if (is_call) Append(out, Symbol(node.kind), "(");
  if (has_parentheses) out += '(';
  Print(*node.left, is_call ? 0 : precedence, out);
  out += is_call ? ", " : Symbol(node.kind);
  // Left-associative: an equal precedence on the right needs parentheses.
  Print(*node.right, is_call ? 0 : precedence + 1, out);
  if (is_call || has_parentheses) out += ')';
}

}  // namespace

IntegerExpression::IntegerExpression(int64_t value) {
  auto node = std::make_shared<Node>();
  node->literal = value;
  node_ = std::move(node);
}

IntegerExpression::IntegerExpression(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

absl::StatusOr<IntegerExpression> IntegerExpression::Parse(std::string_view text) {
  absl::StatusOr<Node::Pointer> node = ExpressionParser(text).Parse();
  if (!node.ok()) return node.status();
  return IntegerExpression(*std::move(node));
}

absl::StatusOr<int64_t> IntegerExpression::Evaluate(
    const std::map<std::string, int64_t, std::less<>>& bindings) const {
  absl::StatusOr<int64_t> value = EvaluateNode(*node_, bindings);
  if (value.ok()) return value;
  return absl::InvalidArgumentError(
      Concat("expression ", Quoted(text()), " ", base::ToStd(value.status().message())));
}

std::vector<std::string> IntegerExpression::names() const {
  std::set<std::string> names;
  CollectNames(*node_, names);
  return {names.begin(), names.end()};
}

std::string IntegerExpression::text() const {
  std::string out;
  Print(*node_, 0, out);
  return out;
}

}  // namespace mtmc::kernel
