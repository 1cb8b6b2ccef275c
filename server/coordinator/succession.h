// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/owner_store.h"

namespace mtmc::coordinator {

// One of several coordinators over a store: it says that it lives for as long as it owns
// the jobs, watches the owner while it does not, and takes over from one that is silent
// or has resigned.
//
// Whoever is silent is known by one's own clock alone: a record that has not changed
// while it was read again and again for `patience`. A store that could not be read begins
// that time anew, since then the owner could not write either. Two who take over at once
// are told apart by the store. An owner that is late, not dead, is harmless: its epoch is
// over, and the store refuses what it writes.
//
// Thread-compatible.
class Succession {
 public:
  struct Options {
    // Of this process; no other one ever has it. Not empty.
    std::string name;
    // Where others reach its gRPC.
    std::string address;
    // How long the owner may be silent: some of its beats, and the stutter of a host or
    // of the store.
    absl::Duration patience = absl::Seconds(5);
  };

  // What was seen last.
  struct View {
    store::OwnerRecord owner;
    // This coordinator owns the jobs, in epoch `owner.epoch`.
    bool is_mine = false;
  };

  Succession(const Options& options, store::OwnerStore& store);

  // One look, and what follows from it. Call about once a second; `now` is of a clock
  // that never jumps. An error is the store's: nothing is known then, and nothing
  // changed hands by this call.
  absl::StatusOr<View> Step(absl::Duration now);

  // Lets another one take over at once.
  absl::Status Resign();

 private:
  bool IsSilent(const store::OwnerRecord& owner, absl::Duration now);

  const Options options_;
  store::OwnerStore& store_;
  // The record that did not change since `since_`.
  std::optional<store::OwnerRecord> seen_;
  absl::Duration since_;
};

}  // namespace mtmc::coordinator
