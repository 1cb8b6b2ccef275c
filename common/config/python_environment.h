// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mtmc::config {

// What a Python interpreter with PyTorch brings: libtorch, NVRTC, CUPTI and the
// CUDA headers all come out of its packages, so that one build serves any host.
// A value; empty paths mean "not there".
struct PythonEnvironment {
  // The interpreter, absolute.
  std::filesystem::path python;
  // "3.11.2".
  std::string python_version;
  // "2.11.0+cu130".
  std::string torch_version;
  // Folder of libtorch_cpu.so.
  std::filesystem::path torch_lib_dir;
  // nvidia/cu13/{lib,include}.
  std::filesystem::path cuda_lib_dir;
  std::filesystem::path cuda_include_dir;
  // libnvrtc.so.13 and libcupti.so.13.
  std::filesystem::path nvrtc_library;
  std::filesystem::path cupti_library;
  // Folders that the interpreter reads: its own, and those of its modules.
  std::vector<std::filesystem::path> folders;
  // Whether an NVIDIA driver is loaded; asks neither the driver nor PyTorch.
  bool has_nvidia_device = false;
  // Whether the package pyopencl is there (OpenCL exports need it).
  bool has_pyopencl = false;
  // Whether PyTorch's modules lie there compiled. Where not, as some installers and images
  // leave it, each import of PyTorch compiles them for some 6 s.
  bool has_bytecode = true;

  // Folders for LD_LIBRARY_PATH of a process that opens any of the above,
  // joined with ':': dlopen() of a library by name looks there, but only if it
  // was set before the process started.
  std::string LibraryPath() const;

  // Finds an interpreter and asks it where its packages lie, without importing
  // PyTorch (0.1 s instead of 3). The interpreter is the first of: `python` if
  // not empty, $MTMC_PYTHON, .venv/bin/python in the current folder or above the
  // program, python3 in PATH. Blocks up to 30 s.
  //
  // NOT_FOUND, reason PYTHON_MISSING (no such interpreter) or TORCH_MISSING (it
  // has no PyTorch); the message says what to install. Probe once and pass the
  // value down.
  static absl::StatusOr<PythonEnvironment> Probe(const std::filesystem::path& python = {});
};

}  // namespace mtmc::config
