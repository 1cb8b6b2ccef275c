// SPDX-License-Identifier: Apache-2.0
#include "worker/opencl/opencl_compiler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/string_view.h"
#include "kernel/program/source_check.h"

namespace mtmc::worker {

OpenClCompiler::OpenClCompiler(std::shared_ptr<const OpenClContext> context)
    : context_(std::move(context)) {}

std::string ReadBuildLog(const OpenClContext& context, cl_program program) {
  size_t size = 0;
  context.api().clGetProgramBuildInfo(program, context.device(), CL_PROGRAM_BUILD_LOG, 0, nullptr,
                                      &size);
  std::string log(size, '\0');
  context.api().clGetProgramBuildInfo(program, context.device(), CL_PROGRAM_BUILD_LOG, size,
                                      log.data(), nullptr);
  while (!log.empty() && log.back() == '\0') log.pop_back();
  return log.substr(0, kMaxLogBytes);
}

namespace {

// Makes the compiler refuse forbidden words, pasted together by macros too; lines
// keep their numbers.
std::string WithPoison(const std::string& source) {
  std::string text = "#pragma GCC poison";
  for (const std::string_view word : kernel::ForbiddenOpenClWords()) {
    absl::StrAppend(&text, " ", base::ToAbsl(word));
  }
  absl::StrAppend(&text, "\n#line 1\n", source);
  return text;
}

}  // namespace

CompileResult OpenClCompiler::Compile(const std::string& source, const kernel::Bindings& defines) {
  const OpenClApi& api = context_->api();
  const absl::Time start = absl::Now();
  CompileResult result;
  auto fail = [&](const std::string& message) {
    result.failure =
        Failure{.kind = Failure::Kind::kCompile, .message = message, .diagnostics = result.log};
    result.duration = absl::Now() - start;
    return result;
  };

  const std::string poisoned = WithPoison(source);
  const char* text = poisoned.data();
  const size_t length = poisoned.size();
  cl_int error = CL_SUCCESS;
  cl_program program =
      api.clCreateProgramWithSource(context_->context(), 1, &text, &length, &error);
  if (error != CL_SUCCESS) return fail("the compiler refused the text: " + OpenClErrorName(error));
  const std::unique_ptr<_cl_program, decltype(api.clReleaseProgram)> owner(program,
                                                                           api.clReleaseProgram);
  std::string options = "-cl-std=CL1.2";
  for (const auto& [name, value] : defines) absl::StrAppend(&options, " -D", name, "=", value);
  const cl_device_id device = context_->device();
  error = api.clBuildProgram(program, 1, &device, options.c_str(), nullptr, nullptr);
  result.log = ReadBuildLog(*context_, program);
  if (error != CL_SUCCESS) return fail("the source does not compile");

  size_t bytes = 0;
  api.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr);
  result.binary.resize(bytes);
  unsigned char* binaries[] = {reinterpret_cast<unsigned char*>(result.binary.data())};
  error = api.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binaries, binaries, nullptr);
  if (error != CL_SUCCESS || bytes == 0) {
    result.binary.clear();
    return fail("the compiler gave no binary: " + OpenClErrorName(error));
  }
  result.duration = absl::Now() - start;
  return result;
}

}  // namespace mtmc::worker
