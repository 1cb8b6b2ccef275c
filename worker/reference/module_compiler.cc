// SPDX-License-Identifier: Apache-2.0
#include "worker/reference/module_compiler.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"

namespace mtmc::worker {

ModuleCompiler::ModuleCompiler(Options options)
    : options_(std::move(options)), marker_(absl::StrCat(options_.folder, "/done")) {}

void ModuleCompiler::Start() {
  if (options_.folder.empty() || process_) return;
  if (std::filesystem::exists(marker_)) return;
  base::SubprocessOptions start;
  start.argv = {options_.python, "-m", "mtmc_reference.bytecode", marker_};
  start.variables = {{"PYTHONPATH", options_.package_folder},
                     {"PYTHONPYCACHEPREFIX", options_.folder},
                     {"PYTHONDONTWRITEBYTECODE", std::nullopt},
                     // It is in nobody's way on a device.
                     {"CUDA_VISIBLE_DEVICES", ""}};
  start.standard_output = base::Stdio::Null();
  start.standard_error = base::Stdio::Null();
  auto started = base::Subprocess::Start(start);
  if (started.ok()) {
    process_.emplace(*std::move(started));
  } else {
    base::Log(base::LogLevel::kWarning, "modules of Python stay uncompiled",
              {{"reason", started.status()}});
  }
}

bool ModuleCompiler::Wait(absl::Time deadline) {
  // Who runs out of time is not done either.
  if (process_) process_->Wait(deadline).status().IgnoreError();
  return !options_.folder.empty() && std::filesystem::exists(marker_);
}

}  // namespace mtmc::worker
