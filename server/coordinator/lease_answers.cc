// SPDX-License-Identifier: Apache-2.0
//
// What LeaseManager answers to a worker, at once or when there is something to say.
#include <utility>

#include "common/base/clock.h"
#include "common/rpc/error.h"
#include "google/protobuf/util/time_util.h"
#include "server/coordinator/lease_manager.h"

namespace mtmc::coordinator {
namespace {

void Identify(const store::LeaseRecord& record, v1::Lease& lease) {
  lease.set_id(record.id);
  lease.set_job(record.job);
  lease.set_candidate(record.candidate);
  lease.set_attempt(record.losses);
}

}  // namespace

google::protobuf::Timestamp LeaseManager::ToProto(absl::Time time) {
  return google::protobuf::util::TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(time));
}

void LeaseManager::Tell(const FleetMember& state, const Reply& reply,
                        v1::SynchronizeResponse response) {
  store_.AfterCommit(state.told_after, [reply, response = std::move(response)]() mutable {
    reply(std::move(response));
  });
}

void LeaseManager::Hold(FleetMember& state, Reply reply) {
  state.held = std::move(reply);
  held_[state.worker.name()] = &state;
  newly_held_.insert(state.worker.name());
}

LeaseManager::Reply LeaseManager::TakeHeld(FleetMember& state) {
  if (state.held) held_.erase(state.worker.name());
  return std::exchange(state.held, nullptr);
}

void LeaseManager::AnswerHeld(FleetMember& state) {
  if (const Reply reply = TakeHeld(state)) Tell(state, reply, IdleResponse(state));
}

void LeaseManager::Answer(FleetMember& state, const v1::SynchronizeRequest& request, Reply reply) {
  const bool is_executing = request.has_executing();
  const absl::Time now = clock_.Now();
  if (!state.lease.empty() && (is_executing || HasTask(state.lease))) {
    if (is_executing) GrantAhead(state);
    return Tell(state, reply, LeaseResponse(state, request.executing().lease_id()));
  }
  // One that works on what nobody wants is told to stop at once, not held.
  const bool takes_work = !is_executing && state.takes_work();
  if (!takes_work) {
    // That its work is called off may be news of any commit.
    state.told_after = store_.newest_commit();
    Tell(state, reply, IdleResponse(state));
    if (state.is_leaving) {
      state.Leave();
      NoteFleetChange();
    }
    return;
  }
  Hold(state, std::move(reply));
  state.held_until = now + options_.hold;
  state.expires = state.held_until + options_.grace;
}

void LeaseManager::ReleaseHeld() {
  for (auto& [name, state] : workers_) {
    if (const Reply reply = TakeHeld(state)) {
      reply(rpc::MakeError(absl::StatusCode::kUnavailable, "SHUTTING_DOWN",
                           "the coordinator stops; call again until it is back"));
    }
  }
}

bool LeaseManager::HasTask(const std::string& lease) const {
  return queue_.Find(leases_.At(lease).work) != nullptr;
}

// Without its work while the search has not come back after a restart: the
// worker has it.
v1::Lease LeaseManager::LeaseOf(const store::LeaseRecord& record) const {
  v1::Lease lease;
  const Task* task = queue_.Find(record.work);
  if (task != nullptr) lease = task->MakeLease();
  Identify(record, lease);
  return lease;
}

v1::SynchronizeResponse LeaseManager::LeaseResponse(FleetMember& state,
                                                    const std::string& executing) {
  const absl::Time next = clock_.Now() + options_.interval;
  state.expires = next + options_.grace;
  v1::SynchronizeResponse response;
  *response.mutable_next_synchronization_time() = ToProto(next);
  response.set_is_draining(state.is_draining);
  if (state.lease == executing) {
    // Its worker has the rest.
    Identify(leases_.At(state.lease), *response.mutable_lease());
  } else {
    *response.mutable_lease() = LeaseOf(leases_.At(state.lease));
  }
  for (const std::string& lease : state.ahead) {
    *response.add_prefetches() = LeaseOf(leases_.At(lease));
  }
  return response;
}

v1::SynchronizeResponse LeaseManager::IdleResponse(FleetMember& state) {
  // A worker that may work calls again at once and is held; another one has no
  // reason to hurry.
  const absl::Time next =
      clock_.Now() + (state.takes_work() ? absl::ZeroDuration() : options_.interval);
  state.expires = next + options_.grace;
  v1::SynchronizeResponse response;
  *response.mutable_next_synchronization_time() = ToProto(next);
  response.mutable_idle();
  response.set_is_draining(state.is_draining);
  return response;
}

}  // namespace mtmc::coordinator
