// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/stall.h"

#include <algorithm>
#include <vector>

#include "kernel/graph/text.h"
#include "kernel/program/signature.h"
#include "kernel/program/source_lexer.h"

namespace mtmc::kernel {
namespace {

// Every block draws its delay from its number and the seed; of many blocks, about 64 have one.
// They are the compiler's names, which no program may use.
constexpr std::string_view kDraw =
    "__mtmc_h ^= __mtmc_h >> 15; __mtmc_h *= 739982445u; __mtmc_h ^= __mtmc_h >> 12; "
    "unsigned __mtmc_p = __mtmc_n < 128 ? 2u : (unsigned)(__mtmc_n / 64); "
    "if (__mtmc_h % __mtmc_p == 0) { ";

// All threads of a block wait alike, by the clock of their multiprocessor: 2^22 ticks are
// about 2 ms.
constexpr std::string_view kCudaHead =
    "static __device__ __noinline__ void __mtmc_stall() { "
    "unsigned long long __mtmc_n = (unsigned long long)gridDim.x * gridDim.y * gridDim.z; "
    "unsigned long long __mtmc_b = blockIdx.x + (unsigned long long)gridDim.x * "
    "(blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z); ";
constexpr std::string_view kCudaWait =
    "long long __mtmc_t = clock64(); "
    "while (clock64() - __mtmc_t < (__mtmc_h >> 10)) {} } }\n";

// One work-item waits for its group: on a CPU they run one after the other. There is no clock;
// 2^20 steps take a millisecond.
constexpr std::string_view kOpenClHead =
    "static void __mtmc_stall(void) { "
    "if (get_local_id(0) + get_local_id(1) + get_local_id(2) != 0) return; "
    "ulong __mtmc_n = get_num_groups(0) * get_num_groups(1) * get_num_groups(2); "
    "ulong __mtmc_b = get_group_id(0) + get_num_groups(0) * "
    "(get_group_id(1) + get_num_groups(1) * get_group_id(2)); ";
constexpr std::string_view kOpenClWait =
    "volatile uint __mtmc_t = 0; "
    "for (uint __mtmc_i = __mtmc_h >> 12; __mtmc_i != 0; --__mtmc_i) __mtmc_t += __mtmc_i; } }\n";

}  // namespace

std::string WithStalledBlocks(const Program& program, uint32_t seed) {
  const LexedSource lexed = LexSource(program.text, program.dialect);
  const KernelScan scan = FindKernels(program.text, program.dialect);
  if (lexed.is_ambiguous() || scan.kernels.empty()) return "";
  std::vector<size_t> bodies;
  for (const KernelSignature& kernel : scan.kernels) {
    if (kernel.body == 0) return "";
    bodies.push_back(kernel.body);
  }
  std::sort(bodies.begin(), bodies.end());
  const bool is_opencl = program.dialect == Dialect::kOpenCl;
  std::string text =
      Concat(is_opencl ? kOpenClHead : kCudaHead, "unsigned __mtmc_h = (unsigned)__mtmc_b * ",
             "2654435761u ^ ", seed, "u; ", kDraw, is_opencl ? kOpenClWait : kCudaWait);
  size_t at = 0;
  for (const size_t body : bodies) {
    text += lexed.spliced().substr(at, body - at);
    text += " __mtmc_stall(); ";
    at = body;
  }
  text += lexed.spliced().substr(at);
  return text;
}

}  // namespace mtmc::kernel
