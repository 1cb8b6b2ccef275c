// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/units.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "kernel/program/signature.h"

namespace mtmc::kernel {
namespace {

// `count` kernels of some size, which `body` is a part of.
std::string Kernels(int count, const std::string& body = "") {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    text += "extern \"C\" __global__ void __launch_bounds__(256) k" + number +
            "(const float* x, float* y) {\n  #pragma unroll\n  for (int j = 0; j < 4; ++j) {" +
            body + " y[j] = helped(x[j] + " + number + ");\n  }\n}\n";
  }
  return text;
}

const char kHelper[] = "#define TWICE 2\n__device__ float helped(float a) { return TWICE * a; }\n";

std::vector<std::string> NamesOf(const std::string& text) {
  std::vector<std::string> names;
  for (const auto& kernel : FindKernels(text, Dialect::kCuda).kernels) names.push_back(kernel.name);
  return names;
}

}  // namespace

TEST_CASE("Each kernel is in one unit, with all that is no kernel", "[program]") {
  const std::vector<std::string> units = SplitIntoUnits(kHelper + Kernels(20) + "// end\n");

  REQUIRE(units.size() == 20);
  std::vector<std::string> names;
  for (const std::string& unit : units) {
    const auto own = NamesOf(unit);
    names.insert(names.end(), own.begin(), own.end());
    CHECK(unit.starts_with(kHelper));
    CHECK(unit.find("// end") != std::string::npos);
    CHECK(FindKernels(unit, Dialect::kCuda).diagnostics.empty());
  }
  CHECK(names == NamesOf(Kernels(20)));
}

TEST_CASE("A unit changes with its own kernels alone", "[program]") {
  const std::string text = kHelper + Kernels(12);
  std::string changed = text;
  changed.insert(changed.find("x[j] + 7"), "\n\n0.5f * ");

  const auto before = SplitIntoUnits(text);
  const auto after = SplitIntoUnits(changed);

  REQUIRE(before.size() == after.size());
  size_t num_equal = 0;
  for (size_t i = 0; i < before.size(); ++i) num_equal += before[i] == after[i] ? 1 : 0;
  CHECK(num_equal + 1 == before.size());
}

TEST_CASE("What kernels share is not repeated without end", "[program]") {
  std::string shared;
  while (shared.size() < Kernels(16).size()) shared += "__device__ int unused;\n";
  const std::string text = kHelper + shared + Kernels(16);

  const auto units = SplitIntoUnits(text);

  CHECK(units.size() > 1);
  CHECK(units.size() <= 8);
  std::vector<std::string> names;
  for (const std::string& unit : units) {
    const auto own = NamesOf(unit);
    names.insert(names.end(), own.begin(), own.end());
  }
  CHECK(names == NamesOf(text));
}

TEST_CASE("A source stays whole where its parts might mean something else", "[program]") {
  CHECK(SplitIntoUnits(kHelper + Kernels(3)).empty());
  CHECK(SplitIntoUnits("#include <cuda_fp16.h>\n" + Kernels(20)).empty());
  // A kernel that another place names: a prototype, an address, a macro.
  CHECK(SplitIntoUnits("__global__ void k3(const float*, float*);\n" + Kernels(20)).empty());
  CHECK(SplitIntoUnits(Kernels(20) + "__device__ auto* p = &k3;\n").empty());
  CHECK(SplitIntoUnits("#define NAME k3\n" + Kernels(20)).empty());
  // Preprocessor lines that are open where a kernel begins or ends.
  CHECK(SplitIntoUnits(Kernels(20, "\n#define HERE 1\n")).empty());
  CHECK(SplitIntoUnits(Kernels(20, "\n#ifdef A\n}\n#endif\n")).empty());
  // Texts on which compilers disagree, or that are cut off.
  CHECK(SplitIntoUnits(Kernels(20) + "/* no end").empty());
  const std::string cut = Kernels(20);
  CHECK(SplitIntoUnits(cut.substr(0, cut.size() - 4)).empty());
}

TEST_CASE("Kernels within a block of C linkage stay within it", "[program]") {
  std::string text = Kernels(10);
  for (size_t at = 0; (at = text.find("extern \"C\" ")) != std::string::npos;) text.erase(at, 11);
  const auto units = SplitIntoUnits("extern \"C\" {\n" + text + "}\n");

  REQUIRE(units.size() == 10);
  for (const std::string& unit : units) {
    const auto kernels = FindKernels(unit, Dialect::kCuda).kernels;
    REQUIRE(kernels.size() == 1);
    CHECK(kernels[0].has_c_linkage);
    CHECK(std::count(unit.begin(), unit.end(), '{') == std::count(unit.begin(), unit.end(), '}'));
  }
}

}  // namespace mtmc::kernel
