// SPDX-License-Identifier: Apache-2.0
#include "worker/bench/synthetic_program.h"

#include "absl/strings/str_cat.h"

namespace mtmc::worker {
namespace {

// Bounded whatever LOOPS is: the fixed point of v -> v * a + b.
constexpr char kBody[] = R"(
  float v = x[i];
  for (int k = 0; k < loops; ++k) v = fma(v, 0.999f, 0.001f);
  y[i] = v;
}
)";

}  // namespace

std::string SyntheticProgram(v1::Dialect dialect) {
  const bool is_cuda = dialect == v1::DIALECT_CUDA;
  const std::string head = absl::StrCat(
      "//@ mtmc 1 ", is_cuda ? "cuda" : "opencl", "\n//@ input x f32[", kSyntheticElements,
      "]\n//@ output y f32[", kSyntheticElements, "]\n//@ tune ", kLoopsParameter,
      " = 1000\n//@ launch ", kSyntheticKernel, " grid=", kSyntheticElements / kSyntheticThreads,
      " block=", kSyntheticThreads, " args=(x, y, ", kLoopsParameter, ")\n");
  const std::string signature =
      is_cuda ? absl::StrCat("extern \"C\" __global__ void ", kSyntheticKernel,
                             "(const float* x, float* y, int loops) {\n"
                             "  const int i = blockIdx.x * blockDim.x + threadIdx.x;")
              : absl::StrCat("__kernel void ", kSyntheticKernel,
                             "(__global const float* x, __global float* y, int loops) {\n"
                             "  const int i = get_global_id(0);");
  return absl::StrCat(head, signature, kBody);
}

}  // namespace mtmc::worker
