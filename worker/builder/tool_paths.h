// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace mtmc::config {
struct PythonEnvironment;
}

namespace mtmc::worker {

// Where the libraries that are opened at run time lie; all of them come with
// the host's PyTorch. Empty means not there. Value type.
struct ToolPaths {
  // libnvrtc.so.13 and libcupti.so.13.
  std::string nvrtc;
  std::string cupti;
  // Folders of the toolkit's headers, joined with ':': that of PyTorch's wheels, and that
  // of Triton's, which has the few that those lack (mma.h needs crt/mma.h).
  std::string cuda_include_dir;
  // Folder of libtorch_cpu.so.
  std::string torch_lib_dir;

  static ToolPaths From(const config::PythonEnvironment& environment);

  // The flags that give these paths to a child: `--nvrtc PATH` and so on.
  std::vector<std::string> ToFlags() const;
};

}  // namespace mtmc::worker
