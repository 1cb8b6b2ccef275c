// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cuda_headers.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/config/paths.h"

namespace mtmc::worker {

std::string CudaIncludePath(const std::string& toolkit) {
  std::string path;
  for (const char* folder : {"share/mtmc/cuda/include", "share/mtmc/cuda/cccl"}) {
    absl::StrAppend(&path, path.empty() ? "" : ":", config::InstalledFile(folder).string());
  }
  if (!toolkit.empty()) absl::StrAppend(&path, ":", toolkit);
  return path;
}

}  // namespace mtmc::worker
