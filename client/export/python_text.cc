// SPDX-License-Identifier: Apache-2.0
#include "client/export/python_text.h"

#include <set>
#include <utility>
#include <variant>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace mtmc::client {
namespace {

using kernel::DataType;

absl::string_view TypeName(DataType type) {
  switch (type) {
    case DataType::kF64:
      return "float64";
    case DataType::kF32:
      return "float32";
    case DataType::kF16:
      return "float16";
    case DataType::kBf16:
      return "bfloat16";
    case DataType::kI64:
      return "int64";
    case DataType::kI32:
      return "int32";
    case DataType::kI16:
      return "int16";
    case DataType::kI8:
      return "int8";
    case DataType::kU8:
      return "uint8";
    case DataType::kBool:
      return "bool";
  }
  return "";
}

// An unsigned parameter takes a negative number modulo its range, as in C.
std::string ScalarTypeName(const kernel::ScalarType& type, bool is_negative) {
  const int bits = 8 * type.bytes;
  switch (type.kind) {
    case kernel::ScalarType::Kind::kFloating:
      return std::string(TypeName(type.data_type));
    case kernel::ScalarType::Kind::kUnsigned:
      return absl::StrCat(is_negative ? "int" : "uint", bits);
    case kernel::ScalarType::Kind::kSigned:
      return absl::StrCat("int", bits);
    case kernel::ScalarType::Kind::kBool:
      return "bool";
  }
  return "";
}

std::string Scalar(const std::string& value, const std::string& type) {
  return absl::StrCat("_mtmc_scalar(", value, ", _mtmc_torch.", type, ")");
}

struct ValueWriter {
  std::string operator()(const kernel::NoneLiteral&) const { return "None"; }

  std::string operator()(const kernel::CallArgument::TensorName& tensor) const {
    if (!tensor.view) return Variable(tensor.name);
    return absl::StrCat("_mtmc_strided(", Variable(tensor.name), ", ", Tuple(tensor.view->shape),
                        ", ", Tuple(tensor.view->strides), ", ", tensor.view->offset, ")");
  }

  std::string operator()(int64_t value) const { return absl::StrCat(value); }

  // A whole number stays a real one: `2.` is another argument than `2`.
  std::string operator()(double value) const { return absl::StrFormat("float(\"%.17g\")", value); }

  std::string operator()(bool value) const { return value ? "True" : "False"; }

  std::string operator()(const std::string& value) const { return Quoted(value); }

  std::string operator()(const std::vector<kernel::CallArgument>& list) const {
    return absl::StrCat("[",
                        absl::StrJoin(list, ", ",
                                      [](std::string* out, const auto& element) {
                                        absl::StrAppend(out, ArgumentText(element));
                                      }),
                        "]");
  }
};

}  // namespace

std::string Quoted(std::string_view text) {
  return absl::StrCat("\"", absl::Utf8SafeCEscape(absl::string_view(text.data(), text.size())),
                      "\"");
}

std::string Real(double value) {
  const std::string text = absl::StrFormat("%.17g", value);
  if (text.find_first_of("in") != std::string::npos) {
    return absl::StrCat("float(\"", text, "\")");
  }
  // Without a point it would be a whole number.
  return text.find_first_of(".e") != std::string::npos ? text : text + ".0";
}

std::string TorchType(DataType type) { return absl::StrCat("_mtmc_torch.", TypeName(type)); }

std::string Tuple(const std::vector<int64_t>& values) {
  return absl::StrCat("(", absl::StrJoin(values, ", "), values.size() == 1 ? ",)" : ")");
}

std::string Variable(std::string_view name) {
  static const auto& keywords = *new std::set<std::string_view>{
      "and",   "as",   "assert", "async",    "await", "class",  "def",
      "del",   "elif", "except", "finally",  "from",  "global", "import",
      "in",    "is",   "lambda", "nonlocal", "not",   "or",     "pass",
      "raise", "try",  "with",   "yield",    "None",  "True",   "False"};
  const absl::string_view text(name.data(), name.size());
  return absl::StrCat(text, keywords.contains(name) || name.starts_with("mtmc") ? "_" : "");
}

std::string ArgumentText(const kernel::CallArgument& argument) {
  const std::string text = std::visit(ValueWriter(), argument.value);
  return argument.keyword.empty() ? text : absl::StrCat(argument.keyword, "=", text);
}

std::string ScalarText(int64_t value, const kernel::ScalarType& type) {
  return Scalar(absl::StrCat(value), ScalarTypeName(type, value < 0));
}

std::string ScalarText(double value, const kernel::ScalarType& type) {
  return Scalar(Real(value), ScalarTypeName(type, value < 0));
}

}  // namespace mtmc::client
