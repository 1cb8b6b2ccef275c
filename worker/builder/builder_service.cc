// SPDX-License-Identifier: Apache-2.0
#include "worker/builder/builder_service.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "kernel/program/parser.h"
#include "worker/cuda/cuda_headers.h"
#include "worker/cuda/nvrtc_compiler.h"
#include "worker/device/failure_proto.h"
#include "worker/opencl/opencl_compiler.h"

namespace mtmc::worker {
namespace {

using Build = pipe::v1::BuilderRequest::Build;
using Built = pipe::v1::BuilderResponse::Built;

// The named values over the program's defaults.
kernel::Bindings ToBindings(const kernel::Program& program, const v1::Variant& variant) {
  kernel::Bindings bindings = kernel::DefaultBindings(program);
  for (const auto& [name, value] : variant.parameters()) bindings[name] = value;
  return bindings;
}

void SetFailure(const Failure& failure, std::vector<Built>& built) {
  for (Built& one : built) *one.mutable_failure() = ToProto(failure, v1::STAGE_BUILD);
}

Built CompileOne(Compiler& compiler, const kernel::Program& program, const v1::Variant& variant) {
  const kernel::Bindings bindings = ToBindings(program, variant);
  CompileResult result = compiler.Compile(program.text, bindings);
  Built built;
  for (const auto& [name, value] : bindings) {
    (*built.mutable_variant()->mutable_parameters())[name] = value;
  }
  if (result.failure) *built.mutable_failure() = ToProto(*result.failure, v1::STAGE_BUILD);
  built.set_binary(std::move(result.binary));
  built.set_log(ToLog(result.log));
  built.set_compile_seconds(absl::ToDoubleSeconds(result.duration));
  return built;
}

// Compiles `variants` on at most `max_threads`; results stand where their variants do.
std::vector<Built> CompileAll(Compiler& compiler, const kernel::Program& program,
                              const std::vector<v1::Variant>& variants, size_t max_threads) {
  std::vector<Built> built(variants.size());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < variants.size(); i = next++) {
      built[i] = CompileOne(compiler, program, variants[i]);
    }
  };
  const size_t num_threads = std::min(variants.size(), max_threads);
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < num_threads; ++i) threads.emplace_back(work);
  work();
  threads.clear();
  return built;
}

}  // namespace

BuilderService::BuilderService(ToolPaths tools, int num_threads)
    : tools_(std::move(tools)),
      num_threads_(num_threads > 0 ? static_cast<size_t>(num_threads)
                                   : std::max(1U, std::thread::hardware_concurrency())) {}

BuilderService::~BuilderService() = default;

absl::StatusOr<Compiler*> BuilderService::FindCompiler(kernel::Dialect dialect,
                                                       const Build& build) {
  const bool is_cuda = dialect == kernel::Dialect::kCuda;
  const int target = is_cuda ? build.device().compute_capability() : build.device_index();
  std::unique_ptr<Compiler>& compiler =
      compilers_[absl::StrCat(is_cuda ? "cuda" : "opencl", target)];
  if (compiler) return compiler.get();
  if (is_cuda) {
    MTMC_ASSIGN_OR_RETURN(
        compiler, NvrtcCompiler::Create({.library = tools_.nvrtc,
                                         .include_dir = CudaIncludePath(tools_.cuda_include_dir),
                                         .compute_capability = target,
                                         .in_units = true}));
  } else {
    MTMC_ASSIGN_OR_RETURN(auto context, OpenClContext::Create(target));
    compiler = std::make_unique<OpenClCompiler>(std::move(context));
  }
  return compiler.get();
}

absl::StatusOr<pipe::v1::BuilderResponse> BuilderService::Answer(
    const pipe::v1::BuilderRequest& request) {
  pipe::v1::BuilderResponse response;
  response.set_sequence(request.sequence());
  const Build& build = request.build();
  std::vector<v1::Variant> variants(build.variants().begin(), build.variants().end());
  if (variants.empty()) variants.emplace_back();
  std::vector<Built> built(variants.size());
  for (size_t i = 0; i < variants.size(); ++i) *built[i].mutable_variant() = variants[i];

  const kernel::ParseResult parsed = kernel::ParseProgram(build.program());
  if (!parsed.program) {
    SetFailure({.kind = Failure::Kind::kParse,
                .message = "the text is not a program",
                .diagnostics = kernel::ToText(parsed.diagnostics)},
               built);
  } else if (parsed.program->dialect == kernel::Dialect::kTriton) {
    SetFailure(
        {.kind = Failure::Kind::kCheck, .message = "this worker does not build triton programs"},
        built);
  } else {
    MTMC_ASSIGN_OR_RETURN(Compiler * compiler, FindCompiler(parsed.program->dialect, build));
    built = CompileAll(*compiler, *parsed.program, variants, num_threads_);
  }
  for (Built& one : built) *response.add_built() = std::move(one);
  return response;
}

}  // namespace mtmc::worker
