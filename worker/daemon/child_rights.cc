// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/child_rights.h"

#include <filesystem>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/config/paths.h"
#include "worker/builder/child_process.h"
#include "worker/builder/tool_paths.h"
#include "worker/cuda/cuda_headers.h"

namespace mtmc::worker {
namespace {

// The channel comes after the standard streams.
constexpr int kChildDescriptors = kChannelFd + 1;
constexpr int kReferenceDescriptors = 3;

void Add(const std::filesystem::path& path, std::vector<std::string>& paths) {
  if (!path.empty()) paths.push_back(path.string());
}

// Our programs and plug-ins.
std::vector<std::string> Installation() {
  std::vector<std::string> paths;
  Add(config::ProgramDir(), paths);
  Add(config::InstalledFile("lib"), paths);
  return paths;
}

void AddPackages(const config::PythonEnvironment& python, std::vector<std::string>& paths) {
  for (const auto& folder : python.folders) Add(folder, paths);
}

}  // namespace

ChildRights MakeChildRights(const config::PythonEnvironment& python, const ChildFolders& folders,
                            bool has_gpu) {
  std::vector<std::string> interpreter;
  AddPackages(python, interpreter);
  Add(config::InstalledFile("share/mtmc/python"), interpreter);
  Add(folders.bytecode, interpreter);
  interpreter.push_back(folders.artifacts);
  interpreter.push_back(folders.runner);

  // NVRTC and the headers that sources may include; nothing else of PyTorch.
  const ToolPaths tools = ToolPaths::From(python);
  std::vector<std::string> compilers = Installation();
  Add(python.cuda_lib_dir, compilers);
  for (const auto& folder : absl::StrSplit(CudaIncludePath(tools.cuda_include_dir), ':')) {
    compilers.emplace_back(folder);
  }
  Add(python.nvrtc_library.parent_path(), compilers);

  // libtorch finds cuDNN and its kin beside itself.
  std::vector<std::string> libraries = Installation();
  AddPackages(python, libraries);
  libraries.push_back(folders.reference);

  return {
      .reference = MakeRights(PartyKind::kReference, {.readable = std::move(interpreter),
                                                      .has_gpu = has_gpu,
                                                      .num_descriptors = kReferenceDescriptors}),
      .builder = MakeRights(PartyKind::kBuilder, {.readable = std::move(compilers),
                                                  .num_descriptors = kChildDescriptors}),
      .runner = MakeRights(PartyKind::kRunner, {.readable = std::move(libraries),
                                                .has_gpu = has_gpu,
                                                .num_descriptors = kChildDescriptors})};
}

}  // namespace mtmc::worker
