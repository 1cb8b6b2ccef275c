// SPDX-License-Identifier: Apache-2.0
#include "worker/builder/tool_paths.h"

#include <utility>

#include "common/config/python_environment.h"

namespace mtmc::worker {

ToolPaths ToolPaths::From(const config::PythonEnvironment& environment) {
  return {.nvrtc = environment.nvrtc_library,
          .cupti = environment.cupti_library,
          .cuda_include_dir = environment.cuda_include_dir,
          .torch_lib_dir = environment.torch_lib_dir};
}

std::vector<std::string> ToolPaths::ToFlags() const {
  const std::pair<const char*, const std::string*> paths[] = {
      {"--nvrtc", &nvrtc},
      {"--cupti", &cupti},
      {"--cuda-include-dir", &cuda_include_dir},
      {"--torch-lib-dir", &torch_lib_dir}};
  std::vector<std::string> flags;
  for (const auto& [flag, path] : paths) {
    if (path->empty()) continue;
    flags.emplace_back(flag);
    flags.push_back(*path);
  }
  return flags;
}

}  // namespace mtmc::worker
