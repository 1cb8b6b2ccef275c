// SPDX-License-Identifier: Apache-2.0
#include "worker/builder/tool_paths.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "common/config/python_environment.h"

namespace mtmc::worker {
namespace {

std::string ToolkitHeaders(const config::PythonEnvironment& environment) {
  std::string path = environment.cuda_include_dir;
  const auto triton =
      environment.torch_lib_dir.parent_path().parent_path() / "triton/backends/nvidia/include";
  std::error_code ignored;
  if (std::filesystem::is_directory(triton, ignored)) {
    path += path.empty() ? triton.string() : ":" + triton.string();
  }
  return path;
}

}  // namespace

ToolPaths ToolPaths::From(const config::PythonEnvironment& environment) {
  return {.nvrtc = environment.nvrtc_library,
          .cupti = environment.cupti_library,
          .cuda_include_dir = ToolkitHeaders(environment),
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
