// SPDX-License-Identifier: Apache-2.0
#include "common/fleet/worker_demand.h"

#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/enum_word.h"
#include "common/fleet/device_class.h"

namespace mtmc::fleet {
namespace {

// One thing that is demanded, as a test and as words.
struct Criterion {
  bool (*holds)(const v1::Worker& worker, const WorkerDemand& demand);
  // `no worker ...`
  std::string (*missing)(const WorkerDemand& demand);
  // What a worker is or has instead.
  const char* verb;
  std::string (*present)(const v1::Worker& worker);
  // Where to look on.
  const char* advice;
};

std::string ShortName(const std::string& worker) { return worker.substr(worker.rfind('/') + 1); }

std::string DeviceText(const v1::DeviceFacts& device) {
  return absl::StrCat(device.product(), " (driver ", device.driver_version(), ", toolchain ",
                      device.toolchain_version(), ")");
}

std::string DialectsText(const v1::Worker& worker) {
  std::vector<std::string> words;
  for (const int dialect : worker.device().dialects()) {
    words.push_back(
        base::EnumWord(v1::Dialect_Name(static_cast<v1::Dialect>(dialect)), "DIALECT_"));
  }
  return words.empty() ? "none" : absl::StrJoin(words, " and ");
}

// In the order in which people think of them: the worker they named first, what
// they can do something about last.
constexpr std::array<Criterion, 5> kCriteria = {{
    {[](const v1::Worker& worker, const WorkerDemand& demand) {
       return demand.selector.worker().empty() || demand.selector.worker() == worker.name();
     },
     [](const WorkerDemand& demand) {
       return absl::StrCat("called ", ShortName(demand.selector.worker()));
     },
     "are", [](const v1::Worker& worker) { return ShortName(worker.name()); }, "mtmc workers list"},
    {[](const v1::Worker& worker, const WorkerDemand& demand) {
       return demand.selector.product().empty() ||
              demand.selector.product() == worker.device().product();
     },
     [](const WorkerDemand& demand) {
       return absl::StrCat("with the device ", demand.selector.product());
     },
     "have", [](const v1::Worker& worker) { return worker.device().product(); },
     "mtmc workers list"},
    {[](const v1::Worker& worker, const WorkerDemand& demand) {
       if (demand.dialect != v1::DIALECT_UNSPECIFIED) {
         return HasDialect(worker.device(), demand.dialect);
       }
       return HasDialect(worker.device(), v1::DIALECT_CUDA) ||
              HasDialect(worker.device(), v1::DIALECT_OPENCL);
     },
     [](const WorkerDemand& demand) {
       return absl::StrCat("with the dialect ",
                           demand.dialect == v1::DIALECT_UNSPECIFIED
                               ? "cuda or opencl"
                               : base::EnumWord(v1::Dialect_Name(demand.dialect), "DIALECT_"));
     },
     "have", DialectsText, "mtmc doctor"},
    {[](const v1::Worker& worker, const WorkerDemand& demand) {
       return worker.isolation_level() >= demand.min_isolation;
     },
     [](const WorkerDemand& demand) {
       return absl::StrCat("with isolation ",
                           base::EnumWord(v1::Isolation_Name(demand.min_isolation), "ISOLATION_"));
     },
     "have",
     [](const v1::Worker& worker) {
       return base::EnumWord(v1::Isolation_Name(worker.isolation_level()), "ISOLATION_");
     },
     "mtmc doctor"},
    {[](const v1::Worker& worker, const WorkerDemand& demand) {
       return !demand.device || IsSameClass(worker.device(), *demand.device);
     },
     [](const WorkerDemand& demand) {
       return absl::StrCat("with the device that the job began on, ", DeviceText(*demand.device),
                           ",");
     },
     "have", [](const v1::Worker& worker) { return DeviceText(worker.device()); },
     "mtmc workers list"},
}};

bool TakesWork(const v1::Worker& worker) {
  return worker.state() == v1::Worker::STATE_IDLE || worker.state() == v1::Worker::STATE_RUNNING;
}

// Of workers that meet all of a demand and take no work.
std::string StatesText(const std::vector<v1::Worker>& workers) {
  std::vector<std::string> states;
  states.reserve(workers.size());
  for (const v1::Worker& worker : workers) {
    states.push_back(absl::StrCat(ShortName(worker.name()), " is ",
                                  base::EnumWord(v1::Worker::State_Name(worker.state()), "STATE_"),
                                  worker.quarantine_reason().empty() ? "" : ": ",
                                  worker.quarantine_reason()));
  }
  return absl::StrCat("no worker that fits takes work; ", absl::StrJoin(states, ", "),
                      "; see mtmc workers list");
}

}  // namespace

WorkerDemand DemandOf(const v1::Job& job) {
  WorkerDemand demand{.selector = job.worker_selector(),
                      .dialect = job.dialect(),
                      .min_isolation = job.evaluation().min_isolation()};
  if (job.has_device()) demand.device = job.device();
  return demand;
}

bool HasDialect(const v1::DeviceFacts& device, v1::Dialect dialect) {
  return std::find(device.dialects().begin(), device.dialects().end(), dialect) !=
         device.dialects().end();
}

bool Meets(const v1::Worker& worker, const WorkerDemand& demand) {
  return std::all_of(kCriteria.begin(), kCriteria.end(),
                     [&](const Criterion& criterion) { return criterion.holds(worker, demand); });
}

std::string WhyNoneServes(const WorkerDemand& demand, const std::vector<v1::Worker>& workers) {
  std::vector<v1::Worker> fitting = workers;
  std::erase_if(fitting,
                [](const auto& worker) { return worker.state() == v1::Worker::STATE_LOST; });
  if (fitting.empty()) return "no worker is connected; start one with mtmc up or mtmc-worker";
  for (const Criterion& criterion : kCriteria) {
    std::set<std::string> present;
    for (const v1::Worker& worker : fitting) present.insert(criterion.present(worker));
    std::erase_if(fitting, [&](const auto& worker) { return !criterion.holds(worker, demand); });
    if (!fitting.empty()) continue;
    return absl::StrCat("no worker ", criterion.missing(demand), " is there; workers ",
                        criterion.verb, " ", absl::StrJoin(present, ", "), "; see ",
                        criterion.advice);
  }
  if (std::any_of(fitting.begin(), fitting.end(), TakesWork)) return "";
  return StatesText(fitting);
}

}  // namespace mtmc::fleet
