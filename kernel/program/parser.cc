// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/parser.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/string_view.h"
#include "kernel/graph/identifier.h"
#include "kernel/graph/text.h"
#include "kernel/program/call_parser.h"
#include "kernel/program/scanner.h"
#include "kernel/program/source_check.h"

namespace mtmc::kernel {
namespace {

// A network of 3,000 operators, one kernel each, takes about 4 KiB for each kernel and
// two directives. Reading so much text takes a tenth of a second.
constexpr size_t kMaxTextBytes = size_t{16} << 20;
constexpr size_t kMaxDirectives = 16 * 1024;
// A sweep has at most the product of its values; the worker bounds that anew.
constexpr size_t kMaxTuneParameters = 32;
constexpr size_t kMaxTuneValues = 64;
constexpr size_t kMaxLaunchArguments = 256;
// After these many diagnostics more would only repeat the first mistake.
constexpr size_t kMaxDiagnostics = 100;
constexpr size_t kMaxDiagnosticsBytes = 64 * 1024;

// Words that stand for literals in a call.
bool IsReservedName(std::string_view name) {
  return name == "None" || name == "True" || name == "False" || name == "inf" || name == "nan" ||
         name == "min" || name == "max" || name == "ceil_div" || name == "_";
}

// Builds a Program from the directives of one text, top to bottom.
class ProgramParser {
 public:
  explicit ProgramParser(std::string_view text) : text_(text) {}

  ParseResult Parse() {
    if (CheckText()) {
      ReadLines();
      if (!has_header_) Report(0, "there is no `//@ mtmc 1 DIALECT` line; it must come first");
      ResolveLaunchArguments();
      if (has_header_ && program_.steps.empty()) Report(0, "the plan has no launch and no call");
    }
    ParseResult result;
    result.diagnostics = std::move(diagnostics_);
    if (result.diagnostics.empty()) {
      program_.text = std::string(text_);
      result.program = std::move(program_);
    }
    return result;
  }

 private:
  bool CheckText() {
    if (text_.size() > kMaxTextBytes) {
      Report(0, Concat("the text has ", text_.size(), " bytes, at most ", kMaxTextBytes));
    } else if (text_.find('\0') != std::string_view::npos) {
      Report(0, "the text holds a NUL byte");
    } else if (!IsUtf8(text_)) {
      Report(0, "the text is not valid UTF-8");
    } else {
      diagnostics_ = CheckCharacters(text_);
    }
    return diagnostics_.empty();
  }

  void ReadLines() {
    size_t directives = 0;
    line_ = 0;
    for (std::string_view line : Split(text_, '\n')) {
      ++line_;
      line = Trim(line);
      // Python has no `//` comment, so a Triton text writes `#@`.
      if (line.substr(0, 3) == "//@") {
        line.remove_prefix(3);
      } else if (line.substr(0, 2) == "#@") {
        line.remove_prefix(2);
      } else {
        continue;
      }
      if (++directives > kMaxDirectives) {
        Report(line_, Concat("there are more than ", kMaxDirectives, " directives"));
        return;
      }
      ReadDirective(Trim(line));
      if (diagnostics_.size() >= kMaxDiagnostics) return;
    }
  }

  void ReadDirective(std::string_view body) {
    const size_t space = body.find_first_of(" \t");
    const std::string_view word = body.substr(0, space);
    const std::string_view rest = space == std::string_view::npos ? "" : Trim(body.substr(space));
    if (!has_header_ && word != "mtmc") {
      Report(line_, "the first directive must be `mtmc 1 DIALECT`");
      has_header_ = true;
    }
    if (word == "mtmc") {
      ReadHeader(rest);
    } else if (word == "input") {
      ReadTensor(Tensor::Role::kInput, rest);
    } else if (word == "weight") {
      ReadTensor(Tensor::Role::kWeight, rest);
    } else if (word == "buffer") {
      ReadTensor(Tensor::Role::kBuffer, rest);
    } else if (word == "output") {
      ReadTensor(Tensor::Role::kOutput, rest);
    } else if (word == "tune") {
      ReadTune(rest);
    } else if (word == "launch") {
      ReadLaunch(rest);
    } else if (word == "call") {
      ReadCall(rest);
    } else if (word == "capture") {
      if (!rest.empty()) Report(line_, "`capture` takes nothing");
      if (program_.has_capture) Report(line_, "`capture` stands twice");
      program_.has_capture = true;
    } else {
      Report(line_,
             Concat("unknown directive ", Quoted(word),
                    "; one of mtmc, input, weight, buffer, output, tune, launch, call, capture"));
    }
  }

  void ReadHeader(std::string_view rest) {
    if (has_header_) return Report(line_, "`mtmc` stands twice");
    has_header_ = true;
    const std::vector<std::string_view> words = SplitWords(rest);
    if (words.size() != 2 || words[0] != "1") {
      return Report(line_, "write `mtmc 1 DIALECT`; 1 is the only version");
    }
    for (const Dialect dialect : {Dialect::kOpenCl, Dialect::kCuda, Dialect::kTriton}) {
      if (words[1] == ToText(dialect)) {
        program_.dialect = dialect;
        return;
      }
    }
    Report(line_, Concat("unknown dialect ", Quoted(words[1]), "; one of opencl, cuda, triton"));
  }

  void ReadTensor(Tensor::Role role, std::string_view rest) {
    const size_t space = rest.find_first_of(" \t");
    const std::string_view name = rest.substr(0, space);
    if (!CheckNewName(name)) return;
    const std::string_view type_text =
        space == std::string_view::npos ? "" : Trim(rest.substr(space));
    const std::optional<TensorType> type = FindTensorType(type_text);
    if (!type) {
      return Report(line_, Concat(Quoted(type_text), " is no tensor type such as f32[16,4096]"));
    }
    tensor_names_.insert(std::string(name));
    program_.tensors.push_back(
        {.role = role, .name = std::string(name), .type = *type, .line = line_});
  }

  void ReadTune(std::string_view rest) {
    for (const std::string_view part : Split(rest, ';')) {
      const size_t equals = part.find('=');
      if (equals == std::string_view::npos)
        return Report(line_, "write `tune NAME = 1 2 ; NAME = 3 4`");
      const std::string_view name = Trim(part.substr(0, equals));
      if (!CheckNewName(name)) return;
      if (program_.tune.size() == kMaxTuneParameters) {
        return Report(line_, Concat("more than ", kMaxTuneParameters, " tune parameters"));
      }
      TuneParameter parameter{.name = std::string(name)};
      if (!ReadTuneValues(part.substr(equals + 1), parameter)) return;
      program_.tune.push_back(std::move(parameter));
    }
  }

  bool ReadTuneValues(std::string_view text, TuneParameter& parameter) {
    for (const std::string_view word : SplitWords(text)) {
      const std::optional<int64_t> value = FindInteger(word);
      if (!value) {
        Report(line_, Concat("tune value ", Quoted(word), " is no integer"));
        return false;
      }
      const auto& values = parameter.values;
      if (std::find(values.begin(), values.end(), *value) != values.end()) {
        Report(line_, Concat("tune parameter ", parameter.name, " lists ", *value, " twice"));
        return false;
      }
      if (parameter.values.size() == kMaxTuneValues) {
        Report(line_, Concat("tune parameter ", parameter.name, " has more than ", kMaxTuneValues,
                             " values"));
        return false;
      }
      parameter.values.push_back(*value);
    }
    if (parameter.values.empty()) {
      Report(line_, Concat("tune parameter ", parameter.name, " has 0 values, must have 1 to ",
                           kMaxTuneValues));
      return false;
    }
    return true;
  }

  void ReadLaunch(std::string_view rest) {
    const size_t space = rest.find_first_of(" \t");
    const std::string_view kernel = rest.substr(0, space);
    if (!IsIdentifier(kernel)) {
      return Report(line_, Concat("kernel ", Quoted(kernel), " is no identifier"));
    }
    Launch launch{
        .kernel = std::string(kernel), .grid = {1, 1, 1}, .block = {1, 1, 1}, .line = line_};
    const std::string_view fields = space == std::string_view::npos ? "" : rest.substr(space);
    const absl::StatusOr<std::vector<Field>> split =
        SplitFields(fields, {"grid", "block", "shared", "args"});
    if (!split.ok()) return Report(line_, split.status());
    std::set<std::string_view> seen;
    std::string_view arguments = "()";
    for (const Field& field : *split) {
      if (!seen.insert(field.key).second) {
        return Report(line_, Concat("`", field.key, "=` stands twice"));
      }
      if (field.key == "args") {
        arguments = field.value;
      } else if (field.key == "shared") {
        if (!ReadExpression(field.value, launch.shared_bytes)) return;
      } else if (!ReadDimensions(field, field.key == "grid" ? launch.grid : launch.block)) {
        return;
      }
    }
    for (const std::string_view key : {"grid", "block", "args"}) {
      if (seen.count(key) == 0) return Report(line_, Concat("a launch needs `", key, "=`"));
    }
    pending_.push_back({program_.steps.size(), arguments});
    program_.steps.push_back(std::move(launch));
  }

  bool ReadDimensions(const Field& field, std::array<IntegerExpression, 3>& dimensions) {
    const absl::StatusOr<std::vector<std::string_view>> parts = SplitTuple(field.value);
    if (!parts.ok()) {
      Report(line_, parts.status());
      return false;
    }
    if (parts->empty() || parts->size() > 3) {
      Report(line_,
             Concat("`", field.key, "=` has ", parts->size(), " dimensions, must have 1 to 3"));
      return false;
    }
    for (size_t i = 0; i < parts->size(); ++i) {
      if (!ReadExpression((*parts)[i], dimensions.at(i))) return false;
    }
    return true;
  }

  bool ReadExpression(std::string_view text, IntegerExpression& expression) {
    absl::StatusOr<IntegerExpression> parsed = IntegerExpression::Parse(text);
    if (!parsed.ok()) {
      Report(line_, parsed.status());
      return false;
    }
    expression = *std::move(parsed);
    return true;
  }

  void ReadCall(std::string_view rest) {
    absl::StatusOr<LibraryCall> call = ParseCall(rest);
    if (!call.ok()) return Report(line_, call.status());
    call->line = line_;
    program_.steps.push_back(*std::move(call));
  }

  // A name means a tensor or a tune parameter, which may be declared below the
  // launch, so arguments are read at the end.
  void ResolveLaunchArguments() {
    for (const PendingArguments& pending : pending_) {
      Launch& launch = std::get<Launch>(program_.steps[pending.step]);
      line_ = launch.line;
      const absl::StatusOr<std::vector<std::string_view>> parts = SplitTuple(pending.text);
      if (!parts.ok()) {
        Report(line_, parts.status());
        continue;
      }
      if (parts->size() > kMaxLaunchArguments) {
        Report(line_, Concat("a launch has at most ", kMaxLaunchArguments, " arguments"));
        continue;
      }
      for (const std::string_view part : *parts) ReadLaunchArgument(part, launch);
      CheckNames(launch);
    }
  }

  void ReadLaunchArgument(std::string_view text, Launch& launch) {
    if (const std::optional<double> real = FindReal(text)) {
      launch.arguments.push_back({*real});
    } else if (tensor_names_.find(text) != tensor_names_.end()) {
      launch.arguments.push_back({std::string(text)});
    } else {
      IntegerExpression expression;
      if (ReadExpression(text, expression)) launch.arguments.push_back({std::move(expression)});
    }
  }

  void CheckNames(const Launch& launch) {
    std::set<std::string> names;
    const auto collect = [&names](const IntegerExpression& expression) {
      for (std::string& name : expression.names()) names.insert(std::move(name));
    };
    std::for_each(launch.grid.begin(), launch.grid.end(), collect);
    std::for_each(launch.block.begin(), launch.block.end(), collect);
    collect(launch.shared_bytes);
    for (const LaunchArgument& argument : launch.arguments) {
      if (const auto* scalar = std::get_if<IntegerExpression>(&argument.value)) collect(*scalar);
    }
    for (const std::string& name : names) {
      const bool is_tune =
          std::any_of(program_.tune.begin(), program_.tune.end(),
                      [&](const TuneParameter& tune) { return tune.name == name; });
      if (!is_tune) {
        Report(launch.line,
               Concat("`", name, "` is neither a declared tensor nor a tune parameter"));
      }
    }
  }

  bool CheckNewName(std::string_view name) {
    if (!IsIdentifier(name) || IsReservedName(name) || name.substr(0, 2) == "__") {
      Report(line_, Concat(Quoted(name), " cannot be a name here"));
      return false;
    }
    if (!names_.insert(std::string(name)).second) {
      Report(line_, Concat("the name ", name, " is declared twice"));
      return false;
    }
    return true;
  }

  void Report(int line, const absl::Status& status) { Report(line, base::ToStd(status.message())); }

  void Report(int line, std::string_view message) {
    diagnostics_.push_back({.line = line, .message = std::string(message)});
  }

  struct PendingArguments {
    size_t step = 0;
    std::string_view text;
  };

  const std::string_view text_;
  int line_ = 0;
  bool has_header_ = false;
  Program program_;
  // Tensors and tune parameters; tensors alone.
  std::set<std::string, std::less<>> names_;
  std::set<std::string, std::less<>> tensor_names_;
  std::vector<PendingArguments> pending_;
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace

std::string ToText(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    std::string line = diagnostic.line > 0
                           ? Concat("line ", diagnostic.line, ": ", diagnostic.message, "\n")
                           : Concat(diagnostic.message, "\n");
    if (text.size() + line.size() > kMaxDiagnosticsBytes) break;
    text += line;
  }
  return text;
}

ParseResult ParseProgram(std::string_view text) { return ProgramParser(text).Parse(); }

}  // namespace mtmc::kernel
