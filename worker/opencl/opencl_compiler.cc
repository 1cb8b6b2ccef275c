// SPDX-License-Identifier: Apache-2.0
#include "worker/opencl/opencl_compiler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernel/program/opencl_guard.h"

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

  // The plan checker says so earlier; here nothing depends on its having been asked.
  const auto words = kernel::CheckOpenClWords(kernel::LexSource(source, kernel::Dialect::kOpenCl));
  if (!words.empty()) {
    result.log = kernel::ToText(words);
    return fail("the source does more than compute");
  }
  const std::string guarded = kernel::GuardOpenCl(source);
  const char* text = guarded.data();
  const size_t length = guarded.size();
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
