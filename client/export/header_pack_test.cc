// SPDX-License-Identifier: Apache-2.0
#include "client/export/header_pack.h"

#include <stdlib.h>

#include <catch2/catch.hpp>

#include "common/base/file.h"
#include "common/config/paths.h"

namespace mtmc::client {
namespace {

// A folder with headers: a includes cuda/b, which includes a.
class Folder {
 public:
  Folder() {
    std::string path = (std::filesystem::temp_directory_path() / "mtmc-headers-XXXXXX").string();
    REQUIRE(::mkdtemp(path.data()) != nullptr);
    folder_ = path;
    Write("a.h", "#pragma once\n#if X\n#include <cuda/b>\n#endif\n");
    Write("cuda/b", "#include \"a.h\"\n#include <host_only.h>\n");
    Write("math.h", "#define INFINITY 1\n");
    Write("mtmc_prelude.h", "#include <math.h>\ntypedef unsigned uint;\n");
    Write("nv/target", "");
  }

  Folder(const Folder&) = delete;

  ~Folder() { std::filesystem::remove_all(folder_); }

  std::string Names(const std::string& source) const {
    std::string names;
    for (const auto& [name, text] : FindHeaders(source, {folder_})) names += name + " ";
    return names;
  }

 private:
  void Write(const std::string& name, const std::string& text) {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    REQUIRE(base::WriteFileAtomically(path, text).ok());
  }

  std::filesystem::path folder_;
};

}  // namespace

TEST_CASE("FindHeaders follows includes and leaves the toolkit's out", "[export]") {
  const Folder folder;

  CHECK(folder.Names("#include <a.h>\n#include <cuda_fp16.h>\n// #include <math.h>\n") ==
        "a.h cuda/b ");
  CHECK(folder.Names("#include <cooperative_groups.h>\n") == "nv/target ");
  CHECK(folder.Names("float f();\n") == "");
}

TEST_CASE("FindHeaders finds what a source uses unasked", "[export]") {
  const Folder folder;

  CHECK(folder.Names("float f() { return INFINITY; }\n") == "math.h mtmc_prelude.h ");
  CHECK(folder.Names("uint f();\n") == "math.h mtmc_prelude.h ");
  CHECK(folder.Names("#define INFINITY 2\nfloat f() { return INFINITY; }\n") == "");
  CHECK(folder.Names("float f(); // INFINITY\n") == "");
}

TEST_CASE("FindHeaders finds all that CUB needs in a file of a megabyte", "[export]") {
  const auto folder = config::InstalledFile("share/mtmc/cuda/cccl");
  if (!std::filesystem::exists(folder)) return;

  const Headers headers = FindHeaders("#include <cub/block/block_reduce.cuh>\n", {folder});

  CHECK(headers.contains("cub/block/block_reduce.cuh"));
  CHECK(headers.contains("nv/target"));
  CHECK(headers.contains("thrust/system/cuda/detail/execution_policy.h"));
  CHECK(PackHeaders(headers).size() < size_t{1} << 20);
}

TEST_CASE("PackHeaders gives nothing for nothing", "[export]") {
  CHECK(PackHeaders({}) == "");
  // zlib's mark of the best compression, in base64.
  CHECK(PackHeaders({{"a.h", "#pragma once\n"}}).starts_with("eN"));
}

}  // namespace mtmc::client
