// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/lru_cache.h"
#include "worker/device/compiler.h"

namespace mtmc::worker {

struct NvrtcApi;

// CUDA C++ to a cubin, through NVRTC, which needs no GPU. Kernels must be
// `extern "C"`; functions without an execution space are device functions; `assert` is
// off. A source that uses what nvcc makes known unasked, such as `INFINITY` and
// `uint32_t`, gets it. What keeps state between launches is refused (`cubin_scan.h`).
class NvrtcCompiler final : public Compiler {
 public:
  struct Options {
    // Path of libnvrtc.so.13; its `libnvrtc-builtins` lies beside it.
    std::string library;
    // Folders of headers for sources that include any, joined with ':' as
    // CudaIncludePath() gives them; empty gives them none.
    std::string include_dir;
    // Times ten: 90 builds for sm_90a, whose features are Hopper's alone.
    int compute_capability = 0;
    // Compile a source of many kernels in parts (kernel/program/units.h), several at a time, and
    // only those that were not compiled lately: the binary may be a set of cubins (cubin_set.h).
    bool in_units = false;
  };

  // UNAVAILABLE with what to install when the library cannot be opened,
  // INVALID_ARGUMENT when it does not know the compute capability.
  static absl::StatusOr<std::unique_ptr<NvrtcCompiler>> Create(const Options& options);
  ~NvrtcCompiler() override;

  CompileResult Compile(const std::string& source, const kernel::Bindings& defines) override;

  // Such as `NVRTC 13.0`.
  std::string version() const;

 private:
  NvrtcCompiler(Options options, std::unique_ptr<NvrtcApi> api);

  std::vector<std::string> FlagsFor(const std::string& source, const kernel::Bindings& defines,
                                    bool has_prelude) const;
  CompileResult CompileWith(const std::string& source, const std::vector<std::string>& flags);
  CompileResult CompileWhole(const std::string& source, const kernel::Bindings& defines);
  std::optional<CompileResult> CompileInUnits(const std::string& source,
                                              const kernel::Bindings& defines);
  std::string CompileUnit(const std::string& unit, const kernel::Bindings& defines);

  const Options options_;
  const std::unique_ptr<NvrtcApi> api_;
  // Cubins of parts of programs, by a digest of all that they were made from: the steps of a search
  // change few kernels of a network.
  base::LruCache<std::string> units_{int64_t{64} << 20};
};

}  // namespace mtmc::worker
