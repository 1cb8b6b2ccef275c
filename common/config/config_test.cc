// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/base/file.h"
#include "common/base/temp_dir.h"
#include "common/config/paths.h"
#include "common/config/python_environment.h"
#include "common/config/version.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"

namespace mtmc::config {
namespace {

using testing::IsOk;

TEST_CASE("Probe finds PyTorch and the CUDA libraries of its wheels", "[config]") {
  const auto environment = PythonEnvironment::Probe();

  REQUIRE_THAT(environment.status(), IsOk());
  CHECK(environment->torch_version.substr(0, 4) == "2.11");
  CHECK(std::filesystem::exists(environment->torch_lib_dir / "libtorch_cpu.so"));
  CHECK(std::filesystem::exists(environment->nvrtc_library));
  CHECK(std::filesystem::exists(environment->cupti_library));
  CHECK(std::filesystem::exists(environment->cuda_include_dir / "cuda.h"));
  CHECK(environment->LibraryPath() ==
        environment->torch_lib_dir.string() + ":" + environment->cuda_lib_dir.string());
}

TEST_CASE("Probe of an interpreter that does not exist says PYTHON_MISSING", "[config]") {
  const auto environment = PythonEnvironment::Probe("/nonexistent/python");

  CHECK(rpc::ErrorReason(environment.status()) == "PYTHON_MISSING");
}

TEST_CASE("Probe of a Python without PyTorch says TORCH_MISSING", "[config]") {
  const auto folder = base::TempDir::Create();
  REQUIRE_THAT(folder.status(), IsOk());
  const auto python = folder->path() / "python";
  REQUIRE_THAT(base::WriteFileAtomically(python, "#!/bin/sh\necho python=$0\n"), IsOk());
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);

  const auto environment = PythonEnvironment::Probe(python);

  CHECK(rpc::ErrorReason(environment.status()) == "TORCH_MISSING");
}

TEST_CASE("Own variables come before those of XDG", "[config]") {
  ::setenv("XDG_DATA_HOME", "/xdg", 1);
  ::unsetenv("MTMC_DATA_DIR");
  CHECK(DataDir() == "/xdg/mtmc");

  ::setenv("MTMC_DATA_DIR", "/own", 1);
  CHECK(DataDir() == "/own");
}

TEST_CASE("A relative XDG folder is ignored", "[config]") {
  ::unsetenv("MTMC_CACHE_DIR");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  ::setenv("HOME", "/home/user", 1);

  CHECK(CacheDir() == "/home/user/.cache/mtmc");
}

TEST_CASE("Versions are compatible within one series", "[config]") {
  const std::string own(Version());
  const std::string series = own.substr(0, own.rfind('.'));

  CHECK(IsCompatibleVersion(series + ".99"));
  CHECK_FALSE(IsCompatibleVersion("999.0.0"));
  CHECK_FALSE(IsCompatibleVersion(""));
}

}  // namespace
}  // namespace mtmc::config
