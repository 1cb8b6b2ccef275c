// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/nvrtc_compiler.h"

#include <dlfcn.h>
#include <nvrtc.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "kernel/program/linkage.h"
#include "kernel/program/units.h"
#include "worker/cuda/cubin_scan.h"
#include "worker/cuda/cubin_set.h"

#define MTMC_NVRTC_FUNCTIONS(F) \
  F(nvrtcVersion)               \
  F(nvrtcGetErrorString)        \
  F(nvrtcGetNumSupportedArchs)  \
  F(nvrtcGetSupportedArchs)     \
  F(nvrtcCreateProgram)         \
  F(nvrtcDestroyProgram)        \
  F(nvrtcCompileProgram)        \
  F(nvrtcGetProgramLogSize)     \
  F(nvrtcGetProgramLog)         \
  F(nvrtcGetCUBINSize)          \
  F(nvrtcGetCUBIN)              \
  F(nvrtcGetPTXSize)            \
  F(nvrtcGetPTX)

namespace mtmc::worker {

struct NvrtcApi {
#define MTMC_DECLARE(name) decltype(&::name) name = nullptr;
  MTMC_NVRTC_FUNCTIONS(MTMC_DECLARE)
#undef MTMC_DECLARE
};

namespace {

// NVRTC opens its builtins by name; once they are in the process, the loader
// finds them by that name wherever they came from.
void OpenBuiltins(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("libnvrtc-builtins.so"))
      dlopen(entry.path().c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
}

absl::StatusOr<std::unique_ptr<NvrtcApi>> OpenNvrtc(const std::string& path) {
  if (path.empty()) {
    return absl::UnavailableError("there is no NVRTC; install the wheel nvidia-cuda-nvrtc");
  }
  OpenBuiltins(std::filesystem::path(path).parent_path());
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    return absl::UnavailableError(absl::StrCat("NVRTC cannot be opened (", dlerror(),
                                               "); install the wheel nvidia-cuda-nvrtc"));
  }
  auto api = std::make_unique<NvrtcApi>();
#define MTMC_LOAD(name)                                                     \
  api->name = reinterpret_cast<decltype(api->name)>(dlsym(library, #name)); \
  if (!api->name) return absl::UnavailableError(path + " has no function " #name);
  MTMC_NVRTC_FUNCTIONS(MTMC_LOAD)
#undef MTMC_LOAD
  return api;
}

std::string ArchitectureFlag(int compute_capability) {
  // From Hopper on, the features that make kernels fast (wgmma, setmaxnreg)
  // exist under the architecture's own name only.
  return absl::StrCat("--gpu-architecture=sm_", compute_capability,
                      compute_capability >= 90 ? "a" : "");
}

// Major and minor.
std::pair<int, int> ReadVersion(const NvrtcApi& api) {
  std::pair<int, int> version;
  api.nvrtcVersion(&version.first, &version.second);
  return version;
}

std::string ReadLog(const NvrtcApi& api, nvrtcProgram program) {
  size_t size = 0;
  if (api.nvrtcGetProgramLogSize(program, &size) != NVRTC_SUCCESS || size == 0) return "";
  std::string log(size, '\0');
  api.nvrtcGetProgramLog(program, log.data());
  log.pop_back();
  return log.substr(0, kMaxLogBytes);
}

// Header with what nvcc makes known to every source.
constexpr char kPrelude[] = "mtmc_prelude.h";

// Whether a source that was refused with `log` may only lack the prelude. Reading it
// costs about as much as the source, so no source gets it unasked.
bool LacksPrelude(const std::string& log) {
  return absl::StrContains(log, "is undefined") || absl::StrContains(log, "namespace \"std\"");
}

// Threads that optimize and assemble the kernels of one source: of a hundred kernels that is two
// thirds of the time. Few kernels gain nothing, and older versions have no such flag.
constexpr int kThreads = 4;
constexpr int kManyKernels = 8;
constexpr int kFirstSplitVersion = 13;

// Threads that compile units. More gain little on 16 cores, and each takes some 50 MB.
constexpr size_t kUnitThreads = 8;

bool HasManyKernels(const std::string& source) {
  constexpr std::string_view kMark = "__global__";
  int count = 0;
  for (size_t at = source.find(kMark); at != std::string::npos && count < kManyKernels;
       at = source.find(kMark, at + kMark.size())) {
    ++count;
  }
  return count >= kManyKernels;
}

// One of the two results of a compilation.
template <typename SizeFunction, typename ReadFunction>
nvrtcResult Read(SizeFunction get_size, ReadFunction read, nvrtcProgram program,
                 std::string& bytes) {
  size_t size = 0;
  const nvrtcResult status = get_size(program, &size);
  if (status != NVRTC_SUCCESS) return status;
  bytes.resize(size);
  return read(program, bytes.data());
}

}  // namespace

NvrtcCompiler::NvrtcCompiler(Options options, std::unique_ptr<NvrtcApi> api)
    : options_(std::move(options)), api_(std::move(api)) {}

NvrtcCompiler::~NvrtcCompiler() = default;

absl::StatusOr<std::unique_ptr<NvrtcCompiler>> NvrtcCompiler::Create(const Options& options) {
  MTMC_ASSIGN_OR_RETURN(std::unique_ptr<NvrtcApi> api, OpenNvrtc(options.library));
  int count = 0;
  api->nvrtcGetNumSupportedArchs(&count);
  std::vector<int> supported(static_cast<size_t>(count));
  if (count > 0) api->nvrtcGetSupportedArchs(supported.data());
  if (std::find(supported.begin(), supported.end(), options.compute_capability) ==
      supported.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("NVRTC does not compile for compute capability ", options.compute_capability));
  }
  return std::unique_ptr<NvrtcCompiler>(new NvrtcCompiler(options, std::move(api)));
}

std::string NvrtcCompiler::version() const {
  const auto [major, minor] = ReadVersion(*api_);
  return absl::StrCat("NVRTC ", major, ".", minor);
}

CompileResult NvrtcCompiler::Compile(const std::string& source, const kernel::Bindings& defines) {
  const absl::Time start = absl::Now();
  const std::string linked = kernel::WithCLinkage(source);
  std::optional<CompileResult> result;
  if (options_.in_units) result = CompileInUnits(linked, defines);
  if (!result) result = CompileWhole(linked, defines);
  result->duration = absl::Now() - start;
  return *std::move(result);
}

CompileResult NvrtcCompiler::CompileWhole(const std::string& source,
                                          const kernel::Bindings& defines) {
  CompileResult result = CompileWith(source, FlagsFor(source, defines, /*has_prelude=*/false));
  if (result.failure && LacksPrelude(result.log) && !options_.include_dir.empty()) {
    CompileResult again = CompileWith(source, FlagsFor(source, defines, /*has_prelude=*/true));
    // What is wrong beside that is told by the first.
    if (again.failure == std::nullopt || again.failure->kind != Failure::Kind::kCompile) {
      result = std::move(again);
    }
  }
  return result;
}

// Absent where the source is not to be split, and where a part fails: what is wrong is told of
// the whole, with its lines.
std::optional<CompileResult> NvrtcCompiler::CompileInUnits(const std::string& source,
                                                           const kernel::Bindings& defines) {
  std::map<std::string, std::map<std::string, std::string>> kernels;
  for (kernel::SourceUnit& unit : kernel::SplitIntoUnits(source)) {
    kernels[std::move(unit.text)].merge(unit.kernels);
  }
  if (kernels.empty()) return std::nullopt;
  std::vector<const std::string*> units;
  for (const auto& [text, names] : kernels) units.push_back(&text);
  std::vector<std::string> cubins(units.size());
  std::atomic<size_t> next = 0;
  std::atomic<bool> has_failed = false;
  auto work = [&] {
    for (size_t i = next++; i < units.size() && !has_failed; i = next++) {
      cubins[i] = CompileUnit(*units[i], defines);
      if (cubins[i].empty()) has_failed = true;
    }
  };
  const size_t most = std::min<size_t>(kUnitThreads, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < std::min(most, units.size()); ++i) threads.emplace_back(work);
    work();
  }
  if (has_failed) return std::nullopt;
  std::vector<CubinPart> parts;
  for (size_t i = 0; i < units.size(); ++i) {
    parts.push_back({.cubin = cubins[i], .symbols = kernels.at(*units[i])});
  }
  CompileResult result;
  result.binary = JoinCubins(parts);
  return result;
}

// Empty where it fails.
std::string NvrtcCompiler::CompileUnit(const std::string& unit, const kernel::Bindings& defines) {
  kernel::Bindings own;
  for (const auto& [name, value] : defines) {
    if (absl::StrContains(unit, name)) own[name] = value;
  }
  const std::vector<std::string> flags = FlagsFor(unit, own, /*has_prelude=*/false);
  const std::string key =
      base::Sha256(absl::StrCat(absl::StrJoin(flags, "\n"), "\n\n", unit)).sha256_hex;
  if (auto known = units_.Find(key)) return *std::move(known);
  std::string cubin = CompileWith(unit, flags).binary;
  if (!cubin.empty()) units_.Put(key, cubin, static_cast<int64_t>(cubin.size()));
  return cubin;
}

std::vector<std::string> NvrtcCompiler::FlagsFor(const std::string& source,
                                                 const kernel::Bindings& defines,
                                                 bool has_prelude) const {
  std::vector<std::string> flags = {ArchitectureFlag(options_.compute_capability), "--std=c++20",
                                    "-default-device", "--extra-device-vectorization",
                                    "--define-macro=NDEBUG"};
  // Without an include folder NVRTC needs no file system and a tenth of the time.
  const bool has_include = has_prelude || source.find("#include") != std::string::npos;
  if (has_include && !options_.include_dir.empty()) {
    for (const auto folder : absl::StrSplit(options_.include_dir, ':', absl::SkipEmpty())) {
      flags.push_back(absl::StrCat("--include-path=", folder));
    }
    // Our limits are defined again by those of libcu++, with equal values.
    flags.emplace_back("--diag-suppress=47");
  }
  if (ReadVersion(*api_).first >= kFirstSplitVersion && HasManyKernels(source)) {
    flags.push_back(absl::StrCat("--split-compile=", kThreads));
  }
  if (has_prelude) flags.push_back(absl::StrCat("--pre-include=", kPrelude));
  for (const auto& [name, value] : defines) {
    flags.push_back(absl::StrCat("--define-macro=", name, "=", value));
  }
  return flags;
}

CompileResult NvrtcCompiler::CompileWith(const std::string& source,
                                         const std::vector<std::string>& flags) {
  CompileResult result;
  const auto fail = [&](std::string message) {
    result.binary.clear();
    result.failure = Failure{
        .kind = Failure::Kind::kCompile, .message = std::move(message), .diagnostics = result.log};
    return std::move(result);
  };
  std::vector<const char*> arguments;
  arguments.reserve(flags.size());
  for (const std::string& flag : flags) arguments.push_back(flag.c_str());

  nvrtcProgram program = nullptr;
  nvrtcResult status =
      api_->nvrtcCreateProgram(&program, source.c_str(), "program.cu", 0, nullptr, nullptr);
  if (status != NVRTC_SUCCESS) {
    return fail(absl::StrCat("the compiler refused the text: ", api_->nvrtcGetErrorString(status)));
  }
  const auto destroy = absl::MakeCleanup([&] { api_->nvrtcDestroyProgram(&program); });
  status = api_->nvrtcCompileProgram(program, static_cast<int>(arguments.size()), arguments.data());
  result.log = ReadLog(*api_, program);
  if (status == NVRTC_ERROR_COMPILATION) return fail("the source does not compile");
  if (status != NVRTC_SUCCESS) {
    return fail(absl::StrCat("the compiler failed: ", api_->nvrtcGetErrorString(status)));
  }
  std::string ptx;
  status = Read(api_->nvrtcGetCUBINSize, api_->nvrtcGetCUBIN, program, result.binary);
  if (status == NVRTC_SUCCESS) {
    status = Read(api_->nvrtcGetPTXSize, api_->nvrtcGetPTX, program, ptx);
  }
  if (status != NVRTC_SUCCESS || result.binary.empty()) {
    return fail(absl::StrCat("the compiler gave no binary: ", api_->nvrtcGetErrorString(status)));
  }
  // The text is a C string.
  while (!ptx.empty() && ptx.back() == '\0') ptx.pop_back();
  if (MaybeFailure failure = CheckCubin(result.binary, ptx, source)) {
    result.failure = *std::move(failure);
    result.binary.clear();
  }
  return result;
}

}  // namespace mtmc::worker
