// SPDX-License-Identifier: Apache-2.0
#include "worker/reference/module_compiler.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/temp_dir.h"
#include "common/testing/status_matchers.h"

namespace mtmc::worker {
namespace {

using testing::IsOk;

class FakePython {
 public:
  FakePython() {
    const std::string script = absl::StrCat(
        "#!/bin/sh\necho \"$2 prefix=$PYTHONPYCACHEPREFIX path=$PYTHONPATH "
        "write=${PYTHONDONTWRITEBYTECODE-yes}\" >> ",
        told_, "\ntouch \"$3\"\n");
    CHECK_THAT(base::WriteFileAtomically(program_, script), IsOk());
    std::filesystem::permissions(program_, std::filesystem::perms::owner_all);
    CHECK_THAT(base::MakeFolder(bytecode_), IsOk());
  }

  // Compiles in a worker of its own, and waits until that is done.
  void Compile() const {
    ModuleCompiler compiler(
        {.python = program_, .package_folder = "/package", .folder = bytecode_});
    compiler.Start();
    CHECK(compiler.Wait(absl::Now() + absl::Seconds(20)));
  }

  std::string told() const { return base::ReadFile(told_).value_or(""); }

  const std::string& bytecode() const { return bytecode_; }

 private:
  base::TempDir folder_ = *base::TempDir::Create();
  std::string program_ = (folder_.path() / "python").string();
  std::string told_ = (folder_.path() / "told").string();
  std::string bytecode_ = (folder_.path() / "bytecode").string();
};

TEST_CASE("Modules are compiled once, into the folder", "[reference]") {
  ::setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
  const FakePython python;
  python.Compile();
  python.Compile();
  CHECK(python.told() == absl::StrCat("mtmc_reference.bytecode prefix=", python.bytecode(),
                                      " path=/package write=yes\n"));
}

TEST_CASE("Without a folder nothing is compiled", "[reference]") {
  ModuleCompiler compiler({.python = "/nonexistent", .package_folder = "", .folder = ""});
  compiler.Start();
  CHECK_FALSE(compiler.Wait(absl::Now()));
}

TEST_CASE("An interpreter that is not there is no error", "[reference]") {
  const auto folder = base::TempDir::Create();
  REQUIRE_THAT(folder.status(), IsOk());
  ModuleCompiler compiler({.python = "/nonexistent",
                           .package_folder = "",
                           .folder = (folder->path() / "bytecode").string()});
  compiler.Start();
  CHECK_FALSE(compiler.Wait(absl::Now()));
}

}  // namespace
}  // namespace mtmc::worker
