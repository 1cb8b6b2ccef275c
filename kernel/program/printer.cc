// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/printer.h"

#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

std::string PrintString(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

std::string PrintCallArgument(const CallArgument& argument);

struct CallValuePrinter {
  std::string operator()(const NoneLiteral&) const { return "None"; }

  std::string operator()(const CallArgument::TensorName& tensor) const {
    if (!tensor.view) return tensor.name;
    const StridedView& view = *tensor.view;
    return Concat("as_strided(", tensor.name, ", [", Join(view.shape, ", "), "], [",
                  Join(view.strides, ", "), "], ", view.offset, ")");
  }

  std::string operator()(int64_t value) const { return Concat(value); }

  std::string operator()(double value) const { return RealText(value); }

  std::string operator()(bool value) const { return value ? "True" : "False"; }

  std::string operator()(const std::string& value) const { return PrintString(value); }

  std::string operator()(const std::vector<CallArgument>& elements) const {
    return Concat("[", Join(elements, ", ", PrintCallArgument), "]");
  }
};

std::string PrintCallArgument(const CallArgument& argument) {
  const std::string value = std::visit(CallValuePrinter{}, argument.value);
  return argument.keyword.empty() ? value : Concat(argument.keyword, "=", value);
}

struct LaunchValuePrinter {
  std::string operator()(const std::string& tensor) const { return tensor; }

  std::string operator()(const IntegerExpression& expression) const { return expression.text(); }

  std::string operator()(double value) const { return RealText(value); }
};

std::string PrintDimensions(const std::array<IntegerExpression, 3>& dimensions) {
  size_t count = 3;
  while (count > 1 && dimensions.at(count - 1).text() == "1") --count;
  std::string text = "(" + dimensions[0].text();
  for (size_t i = 1; i < count; ++i) Append(text, ", ", dimensions.at(i).text());
  return text + ")";
}

struct StepPrinter {
  std::string operator()(const Launch& launch) const {
    std::string text = Concat("launch ", launch.kernel, " grid=", PrintDimensions(launch.grid),
                              " block=", PrintDimensions(launch.block));
    if (launch.shared_bytes.text() != "0") {
      Append(text, " shared=", launch.shared_bytes.text());
    }
    const auto print = [](const LaunchArgument& argument) {
      return std::visit(LaunchValuePrinter{}, argument.value);
    };
    return Concat(text, " args=(", Join(launch.arguments, ", ", print), ")");
  }

  std::string operator()(const LibraryCall& call) const {
    std::string text = Concat("call ", call.op);
    if (!call.overload.empty()) Append(text, ".", call.overload);
    Append(text, "(", Join(call.arguments, ", ", PrintCallArgument), ") -> ",
           Join(call.results, ", "));
    if (call.precision != LibraryCall::Precision::kDefault) {
      Append(text, " precision=", ToText(call.precision));
    }
    if (call.is_channels_last) Append(text, " layout=channels_last");
    return text;
  }
};

}  // namespace

std::string PrintDirectives(const Program& program) {
  const std::string_view mark = program.dialect == Dialect::kTriton ? "#@ " : "//@ ";
  std::string text = Concat(mark, "mtmc ", program.version, " ", ToText(program.dialect), "\n");
  for (const Tensor& tensor : program.tensors) {
    Append(text, mark, ToText(tensor.role), " ", tensor.name, " ", ToText(tensor.type), "\n");
  }
  for (const TuneParameter& parameter : program.tune) {
    Append(text, mark, "tune ", parameter.name, " = ", Join(parameter.values, " "), "\n");
  }
  for (const Step& step : program.steps) {
    Append(text, mark, std::visit(StepPrinter{}, step), "\n");
  }
  if (program.has_capture) Append(text, mark, "capture\n");
  return text;
}

}  // namespace mtmc::kernel
