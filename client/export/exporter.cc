// SPDX-License-Identifier: Apache-2.0
#include "client/export/exporter.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "client/export/forward_writer.h"
#include "client/export/header_pack.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/config/paths.h"
#include "common/config/version.h"
#include "kernel/graph/graph_proto.h"
#include "kernel/program/linkage.h"
#include "kernel/program/parser.h"

namespace mtmc::client {
namespace {

// A Python raw string cannot hold its own quotes; a device source has no reason to.
constexpr absl::string_view kQuotes = "'''";

// The directives are the plan, which the generated forward already follows.
std::string DeviceSource(const std::string& text) {
  return absl::StrReplaceAll(text, {{kQuotes, "' ' '"}});
}

kernel::Bindings BindingsOf(const kernel::Program& program,
                            const std::map<std::string, int64_t>& tuned) {
  kernel::Bindings bindings = kernel::DefaultBindings(program);
  for (const auto& [name, value] : tuned) {
    const auto known = bindings.find(name);
    if (known != bindings.end()) known->second = value;
  }
  return bindings;
}

std::string Remarks(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) absl::StrAppend(&text, "#\n# ", sentence, "\n");
  return text;
}

// The Python that every exported file carries, as much of it as the program needs.
absl::StatusOr<std::string> RuntimeText(const kernel::Program& program,
                                        const std::string& forward) {
  const bool is_cuda = program.dialect == kernel::Dialect::kCuda;
  const bool has_calls = std::any_of(
      program.steps.begin(), program.steps.end(),
      [](const auto& step) { return std::holds_alternative<kernel::LibraryCall>(step); });
  std::vector<absl::string_view> parts = {"tensors", "operator"};
  if (forward.find("_mtmc_class") != std::string::npos) parts.push_back("classes");
  if (has_calls) parts.push_back("library_calls");
  parts.push_back(is_cuda ? "cuda_runtime" : "opencl_runtime");
  if (is_cuda) parts.push_back("cuda_compiler");
  std::string text;
  if (!has_calls) text = "_mtmc_settings = _mtmc_contextlib.nullcontext()\n\n\n";
  for (const absl::string_view part : parts) {
    MTMC_ASSIGN_OR_RETURN(
        const std::string file,
        base::ReadFile(config::InstalledFile(absl::StrCat("share/mtmc/export/", part, ".py"))));
    absl::StrAppend(&text, file, "\n\n");
  }
  return text;
}

// The source as this program's compiler takes it.
std::string SourceText(const kernel::Program& program) {
  const bool is_cuda = program.dialect == kernel::Dialect::kCuda;
  return DeviceSource(is_cuda ? kernel::WithCLinkage(program.text) : program.text);
}

// `_MTMC_HEADERS = "..."` for the CUDA runtime; a line for each kibibyte.
std::string HeadersText(const kernel::Program& program) {
  if (program.dialect != kernel::Dialect::kCuda) return "";
  const std::string packed =
      PackHeaders(FindHeaders(program.text, {config::InstalledFile("share/mtmc/cuda/include"),
                                             config::InstalledFile("share/mtmc/cuda/cccl")}));
  if (packed.empty()) return "_MTMC_HEADERS = \"\"\n";
  std::string text =
      "# Headers that the program includes and PyTorch does not bring, as compressed JSON:\n"
      "# standard ones for NVRTC, and those of libcu++ and CUB, whose licences stand in them.\n"
      "_MTMC_HEADERS = (\n";
  constexpr size_t kLine = 1024;
  for (size_t at = 0; at < packed.size(); at += kLine) {
    absl::StrAppend(&text, "    \"", packed.substr(at, kLine), "\"\n");
  }
  return text + ")\n";
}

}  // namespace

absl::StatusOr<std::string> ExportPython(const ExportInput& input) {
  const kernel::ParseResult parsed = kernel::ParseProgram(input.program);
  if (!parsed.program) {
    return absl::InvalidArgumentError(
        absl::StrCat("the program does not parse: ", kernel::ToText(parsed.diagnostics)));
  }
  const kernel::Program& program = *parsed.program;
  MTMC_ASSIGN_OR_RETURN(const kernel::Graph graph, kernel::FromProto(*input.graph));
  const kernel::Bindings bindings = BindingsOf(program, input.tuned);
  MTMC_ASSIGN_OR_RETURN(const std::string forward, WriteForward(program, graph, bindings));
  MTMC_ASSIGN_OR_RETURN(const std::string runtime, RuntimeText(program, forward));

  return absl::StrCat(
      "# Made by mtmc ", std::string(config::Version()), ": ", input.provenance, "\n",
      "# ModelNew has the constructor, parameters and outputs of Model below. It needs PyTorch "
      "and\n# ",
      program.dialect == kernel::Dialect::kCuda ? "cuda.bindings, which PyTorch brings"
                                                : "pyopencl",
      "; no mtmc process.\n", Remarks(input.remarks), "\n", input.problem_source, "\n\n",
      "# ---- the optimized program ----\n\nimport contextlib as _mtmc_contextlib\n"
      "import ctypes as _mtmc_ctypes\nimport threading as _mtmc_threading\n\nimport torch as "
      "_mtmc_torch\n\n_MTMC_SOURCE = r",
      std::string(kQuotes), "\n", SourceText(program), std::string(kQuotes), "\n",
      HeadersText(program), "\n\n", runtime, forward);
}

}  // namespace mtmc::client
