// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/ptx_scan.h"

#include <catch2/catch.hpp>
#include <string>

namespace mtmc::worker {
namespace {

constexpr char kHead[] =
    ".version 9.0\n.target sm_90a\n.address_size 64\n"
    ".global .align 4 .b8 t[12] = {1, 0, 0, 0, 2};\n.global .align 8 .u64 u;\n";

// What may be written where a kernel has `body`.
std::string Written(const std::string& body, const std::string& head = kHead) {
  return ScanPtx(head + ".visible .entry k(.param .u64 .ptr .global k_0)\n{\n.reg .b64 %rd<9>;\n" +
                 body + "ret;\n}\n")
      .written;
}

}  // namespace

TEST_CASE("ScanPtx finds the variables of a module", "[cubin]") {
  const PtxVariables found =
      ScanPtx(std::string(kHead) + ".visible .global .u32 a, b[2] = {c, d};");

  CHECK(found.declared == std::set<std::string, std::less<>>{"t", "u", "a", "b"});
  CHECK(found.written.empty());
}

TEST_CASE("ScanPtx lets a kernel load from a variable", "[cubin]") {
  const std::string body = GENERATE(
      "ld.global.u32 %r1, [t+4];\n",
      "mov.u64 %rd1, t;\nld.global.nc.v2.u32 {%r1, %r2}, [%rd1+8];\n",
      "mov.u64 %rd1, t;\nadd.s64 %rd2, %rd1, %rd3;\nld.global.u32 %r1, [%rd2];\nst.global.u32 "
      "[%rd3], %r1;\n",
      "mad.wide.s32 %rd2, %r1, 4, %rd1;\nmov.u64 %rd1, t;\ncvta.global.u64 %rd4, %rd2;\n@%p1 "
      "ld.u32 %r1, [%rd4];\n",
      "mov.u64 %rd1, t;\n$L: add.s64 %rd1, %rd1, 4;\nld.u32 %r1, [%rd1];\n@%p1 bra $L;\n",
      "mov.u64 %rd1, t;\nmov.u64 %rd2, u;\nselp.b64 %rd3, %rd1, %rd2, %p1;\nld.u32 %r1, [%rd3];\n");

  INFO(body);
  CHECK(Written(body) == "");
}

TEST_CASE("ScanPtx follows an address to whatever may write it", "[cubin]") {
  const std::string body = GENERATE(
      "st.global.u32 [t], %r1;\n", "mov.u64 %rd1, t;\nst.global.u32 [%rd1], %r1;\n",
      // The store comes first in the text and last in a loop.
      "$L: st.u32 [%rd3], %r1;\nmov.u64 %rd1, t;\nadd.s64 %rd2, %rd1, 4;\nmov.b64 %rd3, %rd2;\n",
      "mov.u64 %rd1, t;\natom.global.add.u32 %r1, [%rd1], 1;\n", "red.global.add.u32 [t], 1;\n",
      // Out of sight: memory, calls, halves, bits, a carry, another variable's value.
      "mov.u64 %rd1, t;\nst.local.u64 [%rd2], %rd1;\n", "st.param.b64 [p+0], t;\n",
      "mov.u64 %rd1, t;\nmov.b64 {%r1, %r2}, %rd1;\n", "mov.u64 %rd1, t;\nand.b64 %rd2, %rd1, 8;\n",
      "mov.u64 %rd1, t;\nsetp.eq.s64 %p1, %rd1, %rd2;\n", "add.cc.u64 %rd2, t, %rd3;\n",
      "mov.u64 %rd1, t;\nsub.s64 %rd2, %rd3, %rd1;\n",
      "mov.u64 %rd1, t;\nadd.s64 %rd2, %rd1, %rd1;\n", "cvt.u32.u64 %r1, t;\n", "mov.u32 %r1, t;\n",
      "{ .global .u64 p = t; }\n", "cp.async.ca.shared.global [%r1], [t], 4;\n",
      "/* ; */ st.u32 /* x */ [ t ], 1;\n", "L:st.u32[t],1;\n", "@!%p1 st.u32 [t], 1;\n",
      "prefetch.global.L2 [t];\n", "{ .reg .b64 a; mov.u64 a, t; st.u32 [a], 1; }\n",
      ".loc 1 1 1 st.u32 [t], 1;\n");

  INFO(body);
  CHECK(Written(body) == "t");
}

TEST_CASE("ScanPtx tells the registers of functions apart", "[cubin]") {
  const std::string first = "mov.u64 %rd1, t;\nld.u32 %r1, [%rd1];\n";
  const std::string next =
      "ret;\n}\n.visible .entry l()\n{\n.reg .b64 %rd<2>;\nst.u32 [%rd1], 1;\n";

  CHECK(Written(first + next) == "");
  CHECK(Written(first + "ret;\n}\n.reg .b64 g;\n.entry l()\n{\n") != "");
}

TEST_CASE("ScanPtx believes nothing that it cannot read", "[cubin]") {
  const std::string text = GENERATE("#define A st\n", "\"\\\"\n", "/* ", "\"a\n");

  INFO(text);
  CHECK(ScanPtx(kHead + text).written != "");
}

}  // namespace mtmc::worker
