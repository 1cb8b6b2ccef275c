// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mtmc::store {

// Which of the coordinators that share a store owns its jobs and its fleet. A value.
struct OwnerRecord {
  // Grows with each owner; 0 before the first.
  int64_t epoch = 0;
  // Grows for as long as that owner lives, so that others need no clock of its.
  int64_t beat = 0;
  // Of its process, never used again; empty when it has resigned.
  std::string name;
  // Where its gRPC is reached by the others.
  std::string address;

  bool operator==(const OwnerRecord&) const = default;
};

// The one row that decides who owns the jobs of a store. A JobStore that has it refuses, with
// UNAVAILABLE and reason NOT_OWNER, each Write of an epoch that is over, from the moment on at
// which another owner was recorded: it is applied wholly before, or not at all. Thread-safe.
// STORE_UNAVAILABLE: try again. STORE_TOO_NEW: a newer release has it; metadata `owner` is where.
class OwnerStore {
 public:
  virtual ~OwnerStore() = default;

  virtual absl::StatusOr<OwnerRecord> ReadOwner() = 0;

  // Records `next` if `seen` is what is recorded; ABORTED with reason OWNER_CHANGED if
  // not. After UNAVAILABLE it may be recorded or not.
  virtual absl::Status ReplaceOwner(const OwnerRecord& seen, const OwnerRecord& next) = 0;
};

// What a store answers to a Write of an epoch that is over, and to ReplaceOwner.
absl::Status NotOwner();
absl::Status OwnerChanged();

}  // namespace mtmc::store
