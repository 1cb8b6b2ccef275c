// SPDX-License-Identifier: Apache-2.0
//
// Who calls LeaseManager as which worker: taken in, written down, and gone.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/coordinator/lease_manager.h"

namespace mtmc::coordinator {
namespace {

using base::Log;
using base::LogLevel;

// A worker that only idles is written so often, for the time it was last heard.
constexpr absl::Duration kRememberInterval = absl::Minutes(1);

absl::Status Replaced(const std::string& name) {
  return rpc::MakeError(
      absl::StatusCode::kFailedPrecondition, "WORKER_REPLACED",
      absl::StrCat("a newer process calls itself \"", name, "\"; give each worker its own --name"),
      {{"worker", name}});
}

absl::Status NameTaken(const std::string& name) {
  return rpc::MakeError(
      absl::StatusCode::kPermissionDenied, "WORKER_NAME_TAKEN",
      absl::StrCat("\"", name, "\" is a live worker of somebody else; give each worker its own",
                   " --name, or wait until that one has been silent for its lease"),
      {{"worker", name}});
}

store::WorkerRecord RecordOf(const FleetMember& state) {
  return {.worker = state.worker, .is_draining = state.is_draining, .identity = state.identity};
}

void LogQuarantine(const FleetMember& before, const v1::Worker& now) {
  if (before.worker.quarantine_reason().empty() == now.quarantine_reason().empty()) return;
  if (now.quarantine_reason().empty()) {
    Log(LogLevel::kInfo, "worker back from quarantine", {{"worker", now.name()}});
  } else {
    Log(LogLevel::kWarning, "worker quarantined",
        {{"worker", now.name()}, {"reason", now.quarantine_reason()}});
  }
}

}  // namespace

absl::StatusOr<FleetMember*> LeaseManager::Admit(const v1::SynchronizeRequest& request,
                                                 const std::string& identity) {
  const std::string& name = request.worker().name();
  MTMC_RETURN_IF_ERROR(CheckIntroduction(request.worker()));
  FleetMember& state = workers_[name];
  if (state.IsTakenFor(identity, clock_.Now())) return NameTaken(name);
  if (state.WasReplaced(request.instance_id())) return Replaced(name);
  if (state.instance != request.instance_id()) {
    if (const Reply reply = TakeHeld(state)) reply(Replaced(name));
    if (state.is_live) odds_.CountLoss();
    Lose(state, "restarted");
    state.Replace(request.instance_id());
    state.written = absl::InfinitePast();
  }
  if (state.identity != identity) {
    state.identity = identity;
    state.written = absl::InfinitePast();
  }
  // A second call of one process: the first one's client has given up on it.
  AnswerHeld(state);
  LogQuarantine(state, request.worker());
  const bool is_new = state.Introduce(request.worker());
  if (is_new || !state.is_live || state.is_leaving != request.is_leaving()) NoteFleetChange();
  state.is_live = true;
  state.is_leaving = request.is_leaving();
  state.most_ahead = request.most_prefetched();
  // Whatever comes of the call: who calls is not lost.
  state.heard = clock_.Now();
  state.expires = state.heard + options_.interval + options_.grace;
  *state.worker.mutable_synchronize_time() = ToProto(clock_.Now());
  return &state;
}

void LeaseManager::Remember(FleetMember& state) {
  const absl::Time now = clock_.Now();
  if (now - state.written < kRememberInterval) return;
  const absl::Status status = Commit({.workers = {RecordOf(state)}}, nullptr);
  if (status.ok()) state.written = now;
}

void LeaseManager::Disconnect(const std::string& worker, const std::string& instance,
                              const std::string& identity) {
  const auto found = workers_.find(worker);
  if (found == workers_.end() || found->second.instance != instance ||
      !IsSameIdentity(found->second.identity, identity)) {
    return;
  }
  TakeHeld(found->second);
  if (found->second.lease.empty()) found->second.expires = clock_.Now() + options_.grace;
}

}  // namespace mtmc::coordinator
