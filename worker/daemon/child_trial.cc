// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/child_trial.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/run_process.h"
#include "common/base/status_macros.h"
#include "common/base/temp_dir.h"
#include "common/config/paths.h"
#include "worker/daemon/child_rights.h"
#include "worker/sandbox/confine.h"

namespace mtmc::worker {
namespace {

// Importing PyTorch from a cold disk takes half a minute.
constexpr absl::Duration kTrialTimeout = absl::Minutes(1);

// Also opens the GPU where there is one, which is what isolation may break.
constexpr char kImport[] =
    "import torch; x = torch.ones(2, device='cuda' if torch.cuda.is_available() else 'cpu'); "
    "print('PyTorch', torch.__version__, 'on', x.device.type, (x + x).sum().item())";

absl::StatusOr<std::string> TryChild(const Rights& rights, const Isolation& isolation,
                                     std::vector<std::string> argv) {
  MTMC_ASSIGN_OR_RETURN(const base::TempDir folder, base::TempDir::Create("mtmc-trial"));
  base::SubprocessOptions start;
  start.argv = std::move(argv);
  start.working_folder = folder.path();
  const Confinement confinement{.rights = rights, .isolation = isolation};
  MTMC_RETURN_IF_ERROR(Confine(confinement, start));
  MTMC_ASSIGN_OR_RETURN(const auto run, base::RunProcess(start, {.timeout = kTrialTimeout}));
  if (run.exit.is_success()) return run.output.substr(0, run.output.find('\n'));
  return absl::UnavailableError(absl::StrCat(run.exit.ToString(), ": ", run.error));
}

HostCheck ToCheck(const std::string& party, const absl::StatusOr<std::string>& result) {
  const std::string name = absl::StrCat("child.", party);
  if (result.ok()) return {name, HostCheck::State::kPresent, *result, ""};
  return {name, HostCheck::State::kMissing, std::string(result.status().message()),
          "start the worker with --isolation=restricted or --isolation=process; if it works then, "
          "a path that the child needs is not among those that it may read: report this line"};
}

}  // namespace

std::vector<HostCheck> TryChildren(const config::PythonEnvironment& python,
                                   const Isolation& isolation) {
  const ChildRights rights = MakeChildRights(python, {}, python.has_nvidia_device);
  const auto program = [](const char* name) { return (config::ProgramDir() / name).string(); };
  return {
      ToCheck("builder",
              TryChild(rights.builder, isolation, {program("mtmc-builder"), "--version"})),
      ToCheck("runner", TryChild(rights.runner, isolation, {program("mtmc-runner"), "--version"})),
      ToCheck("reference",
              TryChild(rights.reference, isolation, {python.python.string(), "-c", kImport}))};
}

}  // namespace mtmc::worker
