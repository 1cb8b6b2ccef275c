// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/fleet_member.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/id.h"
#include "common/config/version.h"
#include "common/rpc/error.h"
#include "server/search/fingerprint.h"

namespace mtmc::coordinator {
namespace {

constexpr char kWorkerPrefix[] = "workers/";

}  // namespace

bool HasDialect(const v1::DeviceFacts& device, v1::Dialect dialect) {
  return std::find(device.dialects().begin(), device.dialects().end(), dialect) !=
         device.dialects().end();
}

bool Selects(const v1::WorkerSelector& selector, const v1::Worker& worker) {
  return (selector.product().empty() || selector.product() == worker.device().product()) &&
         (selector.worker().empty() || selector.worker() == worker.name());
}

absl::Status CheckIntroduction(const v1::Worker& worker) {
  const std::string& name = worker.name();
  if (!absl::StartsWith(name, kWorkerPrefix) ||
      !base::IsResourceId(name.substr(sizeof(kWorkerPrefix) - 1))) {
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_NAME",
                          absl::StrCat("worker name \"", name,
                                       "\" must be workers/ and lower-case letters, digits and -"));
  }
  if (config::IsCompatibleVersion(worker.version())) return absl::OkStatus();
  return rpc::MakeError(
      absl::StatusCode::kFailedPrecondition, "VERSION_MISMATCH",
      absl::StrCat("worker ", name, " has version ", worker.version(), ", the coordinator ",
                   std::string(config::Version()), "; install the same version on both"),
      {{"worker_version", worker.version()},
       {"coordinator_version", std::string(config::Version())}});
}

bool FleetMember::CanServe(const search::Work& work) const {
  return is_live && takes_work() && Selects(work.selector, worker) &&
         HasDialect(worker.device(), work.dialect) &&
         search::DeviceClass(worker.device()) == work.device_class;
}

v1::Worker FleetMember::Describe(const std::string& activity) const {
  v1::Worker described = worker;
  described.set_activity(activity);
  if (!is_live) {
    described.set_state(v1::Worker::STATE_LOST);
  } else if (is_draining || is_leaving) {
    described.set_state(v1::Worker::STATE_DRAINING);
  } else if (is_quarantined()) {
    described.set_state(v1::Worker::STATE_QUARANTINED);
  } else {
    described.set_state(activity.empty() ? v1::Worker::STATE_IDLE : v1::Worker::STATE_RUNNING);
  }
  return described;
}

}  // namespace mtmc::coordinator
