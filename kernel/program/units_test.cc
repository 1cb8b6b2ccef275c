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

// Names that the kernels of all units have in the source; each is in the text under its other one.
std::vector<std::string> NamesOf(const std::vector<SourceUnit>& units) {
  std::vector<std::string> names;
  for (const SourceUnit& unit : units) {
    std::vector<std::string> inside;
    for (const auto& [name, symbol] : unit.kernels) {
      names.push_back(name);
      inside.push_back(symbol);
    }
    std::vector<std::string> there = NamesOf(unit.text);
    std::sort(there.begin(), there.end());
    std::sort(inside.begin(), inside.end());
    CHECK(there == inside);
  }
  return names;
}

std::vector<std::string> Sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("Each kernel is in one unit, with all that is no kernel", "[program]") {
  const std::vector<SourceUnit> units =
      SplitIntoUnits(kHelper + Kernels(20) + "__device__ int last;\n");

  REQUIRE(units.size() == 20);
  for (const SourceUnit& unit : units) {
    CHECK(unit.text.starts_with(kHelper));
    CHECK(unit.text.find("last") != std::string::npos);
    CHECK(FindKernels(unit.text, Dialect::kCuda).diagnostics.empty());
  }
  CHECK(NamesOf(units) == NamesOf(Kernels(20)));
}

TEST_CASE("A unit changes with its own kernels alone", "[program]") {
  const std::string text = kHelper + Kernels(12);
  std::string changed = text;
  changed.insert(changed.find("x[j] + 7"), "\n\n0.5f * ");

  const auto before = SplitIntoUnits(text);
  const auto after = SplitIntoUnits(changed);

  REQUIRE(before.size() == after.size());
  size_t num_equal = 0;
  for (size_t i = 0; i < before.size(); ++i) num_equal += before[i].text == after[i].text ? 1 : 0;
  CHECK(num_equal + 1 == before.size());
}

TEST_CASE("Comments are no part of a unit", "[program]") {
  const std::string text = kHelper + Kernels(12);
  std::string told = "//@ launch k0 grid=(1) block=(256) args=(x, y)\n/* of\nk1 */" + text;
  told.insert(told.find("helped(x[j] + 7"), "// seven\n");
  told += "// end\n";

  const auto units = SplitIntoUnits(text);
  const auto others = SplitIntoUnits(told);

  REQUIRE(units.size() == others.size());
  for (size_t i = 0; i < units.size(); ++i) {
    INFO(others[i].text);
    CHECK((i == 7 || units[i].text == others[i].text));
  }
}

TEST_CASE("Kernels that differ in names alone have equal units", "[program]") {
  std::string text = "struct Pair { float a; float relu; };\n";
  for (int i = 0; i < 10; ++i) {
    const std::string name = "layer_" + std::to_string(i);
    const std::string input = i == 0 ? "a" : "layer_" + std::to_string(i - 1) + "_out";
    text += "extern \"C\" __global__ void " + name + "(const Pair* " + input + ", Pair* " + name +
            "_out) {\n  const Pair* p = " + input + ";\n  " + name + "_out->relu = p->a + " +
            input + "[1].a * " + (i == 9 ? "2" : "1") + ";\n}\n\n";
  }

  const auto units = SplitIntoUnits(text);

  REQUIRE(units.size() == 10);
  for (size_t i = 1; i < 9; ++i) {
    INFO(units[i].text);
    CHECK(units[i].text == units[0].text);
  }
  CHECK(units[9].text != units[0].text);
  CHECK(units[9].kernels.count("layer_9") == 1);
  // A member is no parameter, though it has its name.
  CHECK(units[0].text.find("p->a ") != std::string::npos);
  // Where a name can be spelled out it stays.
  const auto named = SplitIntoUnits(text + "__device__ const char* where() { return __func__; }\n");
  REQUIRE(named.size() == 10);
  CHECK(named[3].kernels.at("layer_3") == "layer_3");
}

TEST_CASE("What stands between two kernels stays there", "[program]") {
  std::string text;
  for (int i = 0; i < 10; ++i) {
    text += "#undef N\n#define N " + std::to_string(i) + "\nextern \"C\" __global__ void k" +
            std::to_string(i) + "(float* y) { y[0] = N; }\n";
  }

  const auto units = SplitIntoUnits(text);

  for (size_t i = 0; i < units.size(); ++i) {
    const size_t kernel = units[i].text.find("__global__");
    const size_t define = units[i].text.rfind("#define N", kernel);
    for (const auto& [name, symbol] : units[i].kernels) {
      CHECK(units[i].text.substr(define + 10, 1) == name.substr(1));
    }
  }
}

TEST_CASE("What kernels share is not repeated without end", "[program]") {
  std::string shared;
  while (shared.size() < Kernels(16).size()) shared += "__device__ int unused;\n";
  const std::string text = kHelper + shared + Kernels(16);

  const auto units = SplitIntoUnits(text);

  CHECK(units.size() > 1);
  CHECK(units.size() <= 8);
  CHECK(Sorted(NamesOf(units)) == Sorted(NamesOf(text)));
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
  for (const auto& [unit, names] : units) {
    const auto kernels = FindKernels(unit, Dialect::kCuda).kernels;
    REQUIRE(kernels.size() == 1);
    CHECK(kernels[0].has_c_linkage);
    CHECK(std::count(unit.begin(), unit.end(), '{') == std::count(unit.begin(), unit.end(), '}'));
  }
}

}  // namespace mtmc::kernel
