// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/fleet/worker_demand.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::coordinator {

struct Shelf;

// What the coordinator knows of one worker.
struct FleetMember {
  // As it described itself last.
  v1::Worker worker;
  // The same as bytes, and which demands it meets, by id of their Shelf.
  std::string description;
  mutable std::unordered_map<uint64_t, bool> meets;
  // Whose the name is, as the guard knows them; empty where nobody is asked.
  std::string identity;
  // Its present process.
  std::string instance;
  // The last processes that a newer one of the same name replaced: older ones have heard of it.
  std::deque<std::string> replaced;
  // What it was granted and has not completed; empty when idle.
  std::string lease;
  // When `lease` was granted, or became the present one.
  absl::Time begin;
  // It said that it works on `lease`.
  bool is_running = false;
  // When it last called.
  absl::Time heard;
  // What it was granted to prepare meanwhile; the first becomes `lease` next.
  std::deque<std::string> ahead;
  // How many it can prepare.
  int most_ahead = 0;
  bool is_live = false;
  bool is_draining = false;
  bool is_leaving = false;
  absl::Time expires = absl::InfiniteFuture();
  absl::Time written = absl::InfinitePast();
  // Newest commit of the store that what it is told depends on (JobStore::AfterCommit).
  int64_t told_after = 0;
  // The held call of an idle worker.
  std::function<void(absl::StatusOr<v1::SynchronizeResponse>)> held;
  absl::Time held_until;

  // Its device failed the canary; the worker says so until one passes.
  bool is_quarantined() const { return !worker.quarantine_reason().empty(); }

  // Whether it may be given anything new.
  bool takes_work() const { return !is_draining && !is_leaving && !is_quarantined(); }

  bool is_idle() const { return lease.empty() && ahead.empty(); }

  // Whether `caller` may not use the name now: another identity has it, and its process
  // lives, or may still.
  bool IsTakenFor(const std::string& caller, absl::Time now) const;

  // The worker describes itself. Returns whether anything is new.
  bool Introduce(const v1::Worker& as);

  // `by` is its process from now on, if it was not before.
  void Replace(const std::string& by);
  bool WasReplaced(const std::string& process) const;

  // Makes `id` its lease, not yet begun.
  void Take(const std::string& id, absl::Time now);

  // It has said that it goes: the name is anybody's from now on.
  void Leave();

  // Whether it may be given work of that demand.
  bool CanServe(const fleet::WorkerDemand& demand) const;
  bool CanServe(const Shelf& shelf) const;

  // Whether it works or not is the caller's to know.
  v1::Worker::State StateWith(bool has_lease) const;

  // As people see it; `activity` is empty when it has no lease.
  v1::Worker Describe(const std::string& activity) const;
};

// Whether what belongs to `owner` may be used by `caller`. Where one of them is empty, the
// guard was off, and nobody is asked.
bool IsSameIdentity(const std::string& owner, const std::string& caller);

// INVALID_ARGUMENT for a bad name, FAILED_PRECONDITION with reason
// VERSION_MISMATCH for a version that cannot serve this coordinator.
absl::Status CheckIntroduction(const v1::Worker& worker);

}  // namespace mtmc::coordinator
