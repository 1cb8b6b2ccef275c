// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "worker/device/compiler.h"
#include "worker/opencl/opencl_context.h"

namespace mtmc::worker {

// OpenCL C 1.2 to the device's own binary form.
class OpenClCompiler final : public Compiler {
 public:
  explicit OpenClCompiler(std::shared_ptr<const OpenClContext> context);

  CompileResult Compile(const std::string& source, const kernel::Bindings& defines) override;

 private:
  const std::shared_ptr<const OpenClContext> context_;
};

// The build log of `program`, at most kMaxLogBytes.
std::string ReadBuildLog(const OpenClContext& context, cl_program program);

}  // namespace mtmc::worker
