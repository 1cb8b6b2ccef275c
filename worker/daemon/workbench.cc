// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/workbench.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/config/paths.h"
#include "common/config/version.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "mtmc/pipe/v1/reference.pb.h"
#include "worker/builder/resident_memory.h"

namespace mtmc::worker {
namespace {

// Opening a device measures its bandwidth and rates: two seconds at most, more
// on a machine that is busy with a build.
constexpr absl::Duration kOpenTimeout = absl::Minutes(2);

// Room without which nothing is worth a try: a few sources, programs and builds, which are tens
// of kilobytes each.
constexpr uint64_t kLeastRoom = uint64_t{1} << 20;

std::string LauncherPath() { return (config::ProgramDir() / "mtmc-sandbox").string(); }

// The two enumerations have the same numbers.
v1::Isolation ToProto(IsolationLevel level) { return static_cast<v1::Isolation>(level); }

static_assert(v1::ISOLATION_CONFINED == static_cast<int>(IsolationLevel::kConfined));

// Next lower level, for a device that does not open at this one.
IsolationLevel Below(IsolationLevel level) {
  return level == IsolationLevel::kConfined ? IsolationLevel::kRestricted
                                            : IsolationLevel::kProcess;
}

int NumCores() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

int NumBuilders(const Workbench::Options& options) {
  return options.num_builders > 0 ? options.num_builders : DefaultBuilders(NumCores());
}

int ThreadsPerBuilder(const Workbench::Options& options) {
  return std::max(1, NumCores() / NumBuilders(options));
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
      folders_{.artifacts = absl::StrCat(options_.scratch, "/artifacts"),
               .reference = absl::StrCat(shared_.path(), "/reference"),
               .runner = absl::StrCat(shared_.path(), "/runner"),
               .bytecode =
                   options_.python.has_bytecode ? "" : absl::StrCat(options_.scratch, "/bytecode")},
      isolation_(DecideIsolation(LauncherPath(), ProbeHost(LauncherPath()), options_.isolation)),
      module_compiler_({.python = options_.python.python.string(),
                        .package_folder = config::InstalledFile("share/mtmc/python").string(),
                        .folder = folders_.bytecode}),
      reference_({.python = options_.python.python.string(),
                  .package_folder = config::InstalledFile("share/mtmc/python").string(),
                  .scratch = folders_.reference,
                  .bytecode_folder = folders_.bytecode,
                  .device = options_.device.torch_name(),
                  .max_resident_bytes = HostMemoryBytes() / 4 * 3,
                  .confinement = &reference_confinement_,
                  .is_cancelled = options_.is_cancelled}),
      builders_({.builder = {.program = (config::ProgramDir() / "mtmc-builder").string(),
                             .scratch = absl::StrCat(options_.scratch, "/builder"),
                             .tools = ToolPaths::From(options_.python),
                             .num_threads = ThreadsPerBuilder(options_),
                             .max_resident_bytes = HostMemoryBytes() / 4,
                             .confinement = &builder_confinement_},
                 .num_builders = NumBuilders(options_),
                 .cache = {.folder = absl::StrCat(options_.scratch, "/builds")}}),
      builder_(builders_, options_.is_cancelled),
      runner_({.program = (config::ProgramDir() / "mtmc-runner").string(),
               .scratch = folders_.runner,
               .tools = ToolPaths::From(options_.python),
               .confinement = &runner_confinement_,
               .max_resident_bytes = HostMemoryBytes() / 4 * 3,
               .is_cancelled = options_.is_cancelled}),
      logged_builder_(builder_, "builder", calls_),
      logged_runner_(runner_, "runner", calls_),
      logged_reference_(reference_, "reference", calls_) {
  ChildRights rights = MakeChildRights(options_.python, folders_, options_.device.is_cuda());
  reference_confinement_.rights = std::move(rights.reference);
  builder_confinement_.rights = std::move(rights.builder);
  runner_confinement_.rights = std::move(rights.runner);
  Use(isolation_);
}

void Workbench::Use(const Isolation& isolation) {
  isolation_ = isolation;
  for (Confinement* confinement :
       {&reference_confinement_, &builder_confinement_, &runner_confinement_}) {
    confinement->isolation = isolation;
  }
}

absl::Status Workbench::Open() {
  // A folder that is mounted must be there before the first child is.
  for (const std::string& folder :
       {folders_.artifacts, folders_.reference, folders_.runner, folders_.bytecode}) {
    if (!folder.empty()) MTMC_RETURN_IF_ERROR(base::MakeFolder(folder));
  }
  module_compiler_.Start();
  absl::Status opened = OpenDevice();
  // Who was killed, as for memory, was not kept from anything.
  if (!opened.ok()) opened = OpenDevice();
  while (!opened.ok() && !isolation_.mechanisms.empty()) {
    base::Log(base::LogLevel::kWarning, "the device does not open in isolation",
              {{"level", NameOf(isolation_.level())}, {"reason", opened}});
    Use(Degrade(isolation_, Below(isolation_.level()),
                absl::StrCat("the runner cannot open the device with it: ",
                             std::string(opened.message()))));
    // Children of two levels may be two users, who do not read each other's files.
    reference_.End();
    opened = OpenDevice();
  }
  return opened;
}

absl::Status Workbench::OpenDevice() {
  reference_.Warm();
  pipe::v1::RunnerRequest request;
  auto& open = *request.mutable_open();
  open.set_backend(options_.device.backend);
  open.set_device_index(options_.device.index);
  open.set_aten_plugin(AtenPluginPath(options_.device));
  open.set_measure_rates(true);
  open.set_seals(isolation_.mechanisms.contains(Mechanism::kSeccomp));
  auto reply = runner_.Call(request, kOpenTimeout);
  if (!reply.is_answered()) return absl::UnavailableError(reply.detail);
  if (reply.response.has_failure()) {
    return absl::UnavailableError(reply.response.failure().message());
  }
  opened_ = std::move(*reply.response.mutable_opened());
  evaluator_ = std::make_unique<Evaluator>(
      Evaluator::Parties{logged_builder_, logged_runner_, logged_reference_}, options_.fetch,
      clock_,
      Evaluator::Options{
          .device = opened_.device(),
          .device_index = options_.device.index,
          .worker = options_.worker,
          .session = base::MakeUuid4(),
          .isolation = InForce(),
          .isolation_level = ToProto(isolation_.level()),
          .torch_device = options_.device.torch_name(),
          .change_runner = [this] { runner_.Alternate(); },
          .give_memory_back = [this] { Rest(); },
          .check_room = [this] { return CheckRoom(); },
      });
  return absl::OkStatus();
}

void Workbench::Prepare(const v1::EvaluationRequest& request,
                        const std::function<bool()>& is_cancelled) {
  PooledBuilder builder(builders_, is_cancelled);
  evaluator_->Prepare(request, builder);
}

void Workbench::PrepareRest() {
  if (options_.device.is_cuda()) reference_.PrepareRest();
}

void Workbench::Rest() {
  runner_.Rest();
  reference_.Rest();
  base::Log(base::LogLevel::kInfo, "memory given back");
}

// Of the shared folder, which is in memory, those who fill it say so themselves.
absl::Status Workbench::CheckRoom() const { return base::CheckRoom(options_.scratch, kLeastRoom); }

// A runner that finds no room for its files fails its canary, too; what is said is the cause.
std::string Workbench::CheckHealth() {
  const absl::Status room = CheckRoom();
  return room.ok() ? runner_.CheckHealth() : std::string(room.message());
}

int Workbench::most_prefetched() const { return std::max(2, NumBuilders(options_)); }

std::vector<std::string> Workbench::InForce() const {
  std::vector<std::string> names = isolation_.InForce();
  names.insert(names.end(), opened_.sealed().begin(), opened_.sealed().end());
  return names;
}

void Workbench::Describe(v1::Worker& worker) const {
  worker.set_name(options_.worker);
  *worker.mutable_device() = opened_.device();
  worker.set_version(std::string(config::Version()));
  for (const std::string& name : InForce()) worker.add_isolation(name);
  for (const auto& [name, reason] : isolation_.missing) {
    (*worker.mutable_missing_isolation())[name] = reason;
  }
  worker.set_isolation_level(ToProto(isolation_.level()));
  worker.set_counters(opened_.counters());
}

}  // namespace mtmc::worker
