// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/stall.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernel/graph/text.h"
#include "kernel/program/race_sites.h"
#include "kernel/program/signature.h"
#include "kernel/program/source_lexer.h"

namespace mtmc::kernel {
namespace {

// Every block draws its delay from its number and the seed. They are the compiler's names, which no
// program may use.
constexpr std::string_view kMix =
    "__mtmc_h ^= __mtmc_h >> 15; __mtmc_h *= 739982445u; __mtmc_h ^= __mtmc_h >> 12; ";
// Of many blocks, about 64 begin late.
constexpr std::string_view kManyBegin =
    "unsigned __mtmc_p = __mtmc_n < 128 ? 2u : (unsigned)(__mtmc_n / 64); "
    "if (__mtmc_h % __mtmc_p == 0) { ";
// Some four wait in the middle, and two of those that begin last: others end after them as well
// where few run at a time. 0 for who does not wait.
constexpr std::string_view kFewMiddle =
    "unsigned __mtmc_p = __mtmc_b + 4 >= __mtmc_n ? 2u : (unsigned)(__mtmc_n / 4 + 1); "
    "if (__mtmc_h % __mtmc_p != 0) return 0; "
    "__mtmc_h *= 2246822519u; return (__mtmc_h ^ __mtmc_h >> 13) | 16u; }\n";

constexpr std::string_view kCudaPlace =
    "unsigned long long __mtmc_n = (unsigned long long)gridDim.x * gridDim.y * gridDim.z; "
    "unsigned long long __mtmc_b = blockIdx.x + (unsigned long long)gridDim.x * "
    "(blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z); ";
constexpr std::string_view kOpenClPlace =
    "ulong __mtmc_n = get_num_groups(0) * get_num_groups(1) * get_num_groups(2); "
    "ulong __mtmc_b = get_group_id(0) + get_num_groups(0) * "
    "(get_group_id(1) + get_num_groups(1) * get_group_id(2)); ";

// All threads of a block wait alike, by the clock of their multiprocessor: 2^22 ticks are
// about 2 ms.
constexpr std::string_view kCudaBegin = "static __device__ __noinline__ void __mtmc_stall() { ";
constexpr std::string_view kCudaBeginWait =
    "long long __mtmc_t = clock64(); "
    "while (clock64() - __mtmc_t < (__mtmc_h >> 10)) {} } }\n";
constexpr std::string_view kCudaDraw = "static __device__ __noinline__ unsigned __mtmc_draw() { ";
constexpr std::string_view kCudaMiddle =
    "static __device__ __noinline__ unsigned __mtmc_begin(unsigned __mtmc_s) { "
    "unsigned __mtmc_h = __mtmc_draw(); "
    "return __mtmc_h ? (__mtmc_h >> 8) % __mtmc_s + 1 : 0; }\n"
    "static __device__ __noinline__ unsigned __mtmc_wait() { "
    "long long __mtmc_t = clock64(), __mtmc_u = __mtmc_draw() >> 9 | 1u << 21; "
    "while (clock64() - __mtmc_t < __mtmc_u) {} return 0; }\n";

// One work-item waits for its group as it begins: on a CPU they run one after the other. In the
// middle the first one does, and another one. There is no clock; 2^20 steps take a millisecond.
constexpr std::string_view kOpenClBegin =
    "static void __mtmc_stall(void) { "
    "if (get_local_id(0) + get_local_id(1) + get_local_id(2) != 0) return; ";
constexpr std::string_view kOpenClBeginWait =
    "volatile uint __mtmc_t = 0; "
    "for (uint __mtmc_i = __mtmc_h >> 12; __mtmc_i != 0; --__mtmc_i) __mtmc_t += __mtmc_i; } }\n";
constexpr std::string_view kOpenClDraw = "static unsigned __mtmc_draw(void) { ";
constexpr std::string_view kOpenClMiddle =
    "static unsigned __mtmc_begin(unsigned __mtmc_s) { "
    "unsigned __mtmc_h = __mtmc_draw(); "
    "unsigned __mtmc_i = get_local_id(0) + get_local_size(0) * "
    "(get_local_id(1) + get_local_size(1) * get_local_id(2)); "
    "unsigned __mtmc_o = (__mtmc_h >> 5) % "
    "(unsigned)(get_local_size(0) * get_local_size(1) * get_local_size(2)); "
    "bool __mtmc_w = __mtmc_h && (__mtmc_i == 0 || __mtmc_i == __mtmc_o); "
    "return __mtmc_w ? (__mtmc_h >> 8) % __mtmc_s + 1 : 0; }\n"
    "static unsigned __mtmc_wait(void) { "
    "volatile uint __mtmc_t = 0; "
    "for (uint __mtmc_i = __mtmc_draw() >> 9 | 1u << 21; __mtmc_i != 0; --__mtmc_i) "
    "__mtmc_t += __mtmc_i; return 0; }\n";

// What stands in place of `text`, from `begin` to `end`.
struct Replacement {
  size_t begin = 0;
  size_t end = 0;
  std::string text;
};

// Writes the delays of one kernel.
class KernelWriter {
 public:
  KernelWriter(const LexedSource& source, Dialect dialect)
      : text_(source.spliced()), automatic_(dialect == Dialect::kOpenCl ? "__auto_type" : "auto") {}

  // The replacements of its sites, and of the place `body` at which it begins.
  std::vector<Replacement> Write(size_t body, const std::vector<RaceSite>& sites) {
    std::vector<Replacement> found = {{body, body, ""}};
    for (const RaceSite& site : sites) found.push_back(WriteSite(site));
    found.front().text = Concat(" unsigned __mtmc_at = __mtmc_begin(", count_, "u); ");
    return found;
  }

 private:
  Replacement WriteSite(const RaceSite& site) {
    const std::string statement(text_.substr(site.begin, site.end - site.begin));
    const std::string number = Concat(count_);
    switch (site.kind) {
      case RaceSite::Kind::kAtomic:
        if (site.is_declaration) return {site.begin, site.end, statement + Wait()};
        return {site.begin, site.end, Concat("{ ", statement, Wait(), "}")};
      case RaceSite::Kind::kStore: {
        std::string text =
            Concat("{ ", automatic_, " __mtmc_v", number, " = ", site.value, ";", Wait());
        text += Concat(site.target, " = __mtmc_v", number, ";", Wait(), "}");
        return {site.begin, site.end, std::move(text)};
      }
      case RaceSite::Kind::kUnorderedStore:
        break;
    }
    const std::string_view next = text_.substr(site.end, site.next_end - site.end);
    std::string text =
        Concat(automatic_, " __mtmc_a", number, " = &(", site.target, "); ", automatic_,
               " __mtmc_v", number, " = ", site.value, ";", next, Wait());
    text += Concat("*__mtmc_a", number, " = __mtmc_v", number, ";");
    return {site.begin, site.next_end, std::move(text)};
  }

  std::string Wait() {
    return Concat(" if (__mtmc_at == ", ++count_, "u) __mtmc_at = __mtmc_wait(); ");
  }

  const std::string_view text_;
  const std::string_view automatic_;
  // Places at which a block may wait.
  int count_ = 0;
};

// What a block draws.
std::string Draw(Dialect dialect, uint32_t seed) {
  return Concat(dialect == Dialect::kOpenCl ? kOpenClPlace : kCudaPlace,
                "unsigned __mtmc_h = (unsigned)__mtmc_b * 2654435761u ^ ", seed, "u; ", kMix);
}

std::string Beginning(Dialect dialect, uint32_t seed) {
  const bool is_opencl = dialect == Dialect::kOpenCl;
  return Concat(is_opencl ? kOpenClBegin : kCudaBegin, Draw(dialect, seed), kManyBegin,
                is_opencl ? kOpenClBeginWait : kCudaBeginWait);
}

std::string Middle(Dialect dialect, uint32_t seed) {
  const bool is_opencl = dialect == Dialect::kOpenCl;
  return Concat(is_opencl ? kOpenClDraw : kCudaDraw, Draw(dialect, seed), kFewMiddle,
                is_opencl ? kOpenClMiddle : kCudaMiddle);
}

}  // namespace

std::string WithStalledBlocks(const Program& program, uint32_t seed, StallPlaces places) {
  const LexedSource lexed = LexSource(program.text, program.dialect);
  const KernelScan scan = FindKernels(program.text, program.dialect);
  if (lexed.is_ambiguous()) return "";
  std::vector<Replacement> replacements;
  for (const KernelSignature& kernel : scan.kernels) {
    if (kernel.body == 0) return "";
    if (places == StallPlaces::kBeginnings) {
      replacements.push_back({kernel.body, kernel.body, " __mtmc_stall(); "});
      continue;
    }
    const std::vector<RaceSite> sites = FindRaceSites(program, lexed, kernel);
    if (sites.empty()) continue;
    for (Replacement& each : KernelWriter(lexed, program.dialect).Write(kernel.body, sites)) {
      replacements.push_back(std::move(each));
    }
  }
  if (replacements.empty()) return "";
  std::sort(replacements.begin(), replacements.end(),
            [](const Replacement& a, const Replacement& b) { return a.begin < b.begin; });
  std::string text = places == StallPlaces::kBeginnings ? Beginning(program.dialect, seed)
                                                        : Middle(program.dialect, seed);
  size_t at = 0;
  for (const Replacement& each : replacements) {
    text += lexed.spliced().substr(at, each.begin - at);
    text += each.text;
    at = each.end;
  }
  text += lexed.spliced().substr(at);
  return text;
}

}  // namespace mtmc::kernel
