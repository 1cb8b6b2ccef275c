// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/workbench.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/id.h"
#include "common/config/paths.h"
#include "common/config/version.h"

namespace mtmc::worker {
namespace {

// Opening a device measures its bandwidth and rates: two seconds at most, more
// on a machine that is busy with a build.
constexpr absl::Duration kOpenTimeout = absl::Minutes(2);

// The isolation of this version, by name: what a child cannot do to the daemon
// and to other children.
std::vector<std::string> IsolationInForce() {
  return {"process", "process-group-deadline", "environment-allow-list", "descriptors"};
}

}  // namespace

std::string AtenPluginPath(const DeviceChoice& device) {
  const auto path =
      config::InstalledFile(device.is_cuda() ? "lib/mtmc_aten_cuda.so" : "lib/mtmc_aten.so");
  return std::filesystem::exists(path) ? path.string() : "";
}

Workbench::Workbench(Options options)
    : options_(std::move(options)),
      shared_(options_.scratch),
      reference_({.python = options_.python.python.string(),
                  .package_folder = config::InstalledFile("share/mtmc/python").string(),
                  .scratch = absl::StrCat(shared_.path(), "/reference"),
                  .is_cancelled = options_.is_cancelled}),
      builder_({.program = (config::ProgramDir() / "mtmc-builder").string(),
                .scratch = absl::StrCat(options_.scratch, "/builder"),
                .tools = ToolPaths::From(options_.python),
                .is_cancelled = options_.is_cancelled}),
      runner_({.program = (config::ProgramDir() / "mtmc-runner").string(),
               .scratch = absl::StrCat(shared_.path(), "/runner"),
               .tools = ToolPaths::From(options_.python),
               .is_cancelled = options_.is_cancelled}) {}

absl::Status Workbench::Open() {
  reference_.Warm();
  v1::RunnerRequest request;
  auto& open = *request.mutable_open();
  open.set_backend(options_.device.backend);
  open.set_device_index(options_.device.index);
  open.set_aten_plugin(AtenPluginPath(options_.device));
  open.set_measure_rates(true);
  auto reply = runner_.Call(request, kOpenTimeout);
  if (!reply.is_answered()) return absl::UnavailableError(reply.detail);
  if (reply.response.has_failure()) {
    return absl::UnavailableError(reply.response.failure().message());
  }
  opened_ = std::move(*reply.response.mutable_opened());
  evaluator_ = std::make_unique<Evaluator>(Evaluator::Parties{builder_, runner_, reference_},
                                           options_.fetch, clock_,
                                           Evaluator::Options{
                                               .device = opened_.device(),
                                               .device_index = options_.device.index,
                                               .worker = options_.worker,
                                               .session = base::MakeUuid4(),
                                               .isolation = IsolationInForce(),
                                               .torch_device = options_.device.torch_name(),
                                               .renew_runner = [this] { runner_.Retire(); },
                                           });
  return absl::OkStatus();
}

void Workbench::Describe(v1::Worker& worker) const {
  worker.set_name(options_.worker);
  *worker.mutable_device() = opened_.device();
  worker.set_version(std::string(config::Version()));
  for (const std::string& name : IsolationInForce()) worker.add_isolation(name);
  (*worker.mutable_missing_isolation())["namespaces"] = "not used by this version";
  (*worker.mutable_missing_isolation())["seccomp"] = "not used by this version";
  worker.set_counters(opened_.counters());
}

}  // namespace mtmc::worker
