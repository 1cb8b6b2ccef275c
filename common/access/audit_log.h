// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace mtmc::access {

// A call that changed something, or was refused.
struct AuditEntry {
  absl::Time time;
  // Name of the caller, and the role it was let in by; empty if it was not.
  std::string who;
  std::string role;
  // As `mtmc.v1.JobService/CancelJob`.
  std::string method;
  // Resource name that the request gives; cut after 256 bytes.
  std::string resource;
  absl::StatusCode status = absl::StatusCode::kOk;
  // As of rpc::ArrivedCall.
  std::string peer;
};

// `entry` as one line of JSON, with its line feed.
std::string ToJsonLine(const AuditEntry& entry);

// A file of such lines. It is opened for each, so that it may be moved away and a new one
// begins; it is its owner's alone. Lines are handed to the kernel, not waited for on disk.
// Thread-safe.
class AuditLog {
 public:
  // INVALID_ARGUMENT with reason AUDIT_LOG_UNWRITABLE.
  static absl::Status Check(const std::string& path);

  explicit AuditLog(std::string path);

  // A line that cannot be written is an error of the daemon's log.
  void Write(const AuditEntry& entry) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::string path_;
  // Held over a write, so that lines stay whole.
  absl::Mutex mu_;
};

}  // namespace mtmc::access
