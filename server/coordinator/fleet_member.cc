// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/fleet_member.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/id.h"
#include "common/config/version.h"
#include "common/rpc/error.h"
#include "server/coordinator/work_queue.h"

namespace mtmc::coordinator {
namespace {

constexpr char kWorkerPrefix[] = "workers/";

// More shelves than any fleet needs at once.
constexpr size_t kMaxRemembered = 4096;

// A process that was replaced calls once more and ends.
constexpr size_t kMostReplaced = 16;

}  // namespace

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

bool IsSameIdentity(const std::string& owner, const std::string& caller) {
  return owner.empty() || caller.empty() || owner == caller;
}

bool FleetMember::IsTakenFor(const std::string& caller, absl::Time now) const {
  const bool may_live = is_live || (expires != absl::InfiniteFuture() && now < expires);
  return may_live && !IsSameIdentity(identity, caller);
}

void FleetMember::Replace(const std::string& by) {
  if (!instance.empty()) replaced.push_back(instance);
  if (replaced.size() > kMostReplaced) replaced.pop_front();
  instance = by;
}

bool FleetMember::WasReplaced(const std::string& process) const {
  return std::find(replaced.begin(), replaced.end(), process) != replaced.end();
}

void FleetMember::Take(const std::string& id, absl::Time now) {
  lease = id;
  begin = now;
  is_running = false;
}

void FleetMember::Leave() {
  is_live = false;
  identity.clear();
}

bool FleetMember::CanServe(const fleet::WorkerDemand& demand) const {
  return is_live && takes_work() && fleet::Meets(worker, demand);
}

bool FleetMember::CanServe(const Shelf& shelf) const {
  if (!is_live || !takes_work()) return false;
  if (meets.size() > kMaxRemembered) meets.clear();
  const auto [found, is_new] = meets.try_emplace(shelf.id, false);
  if (is_new) found->second = fleet::Meets(worker, shelf.demand);
  return found->second;
}

bool FleetMember::Introduce(const v1::Worker& as) {
  std::string bytes = as.SerializeAsString();
  if (bytes == description) return false;
  description = std::move(bytes);
  worker = as;
  meets.clear();
  return true;
}

v1::Worker::State FleetMember::StateWith(bool has_lease) const {
  if (!is_live) return v1::Worker::STATE_LOST;
  if (is_draining || is_leaving) return v1::Worker::STATE_DRAINING;
  if (is_quarantined()) return v1::Worker::STATE_QUARANTINED;
  return has_lease ? v1::Worker::STATE_RUNNING : v1::Worker::STATE_IDLE;
}

v1::Worker FleetMember::Describe(const std::string& activity) const {
  v1::Worker described = worker;
  described.set_activity(activity);
  described.set_state(StateWith(!activity.empty()));
  return described;
}

}  // namespace mtmc::coordinator
