// SPDX-License-Identifier: Apache-2.0
#include "common/access/audit_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/unique_fd.h"
#include "common/rpc/error.h"

namespace mtmc::access {
namespace {

constexpr size_t kMaxResource = 256;

base::UniqueFd Open(const std::string& path) {
  return base::UniqueFd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
}

absl::Status Append(const std::string& path, std::string_view line) {
  const base::UniqueFd file = Open(path);
  if (file.get() < 0) return absl::ErrnoToStatus(errno, "open");
  while (!line.empty()) {
    const ssize_t written = ::write(file.get(), line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return absl::ErrnoToStatus(errno, "write");
    line.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ToJsonLine(const AuditEntry& entry) {
  nlohmann::ordered_json json;
  json["time"] = absl::FormatTime(absl::RFC3339_full, entry.time, absl::UTCTimeZone());
  json["who"] = entry.who;
  json["role"] = entry.role;
  json["method"] = entry.method;
  json["resource"] = entry.resource.substr(0, kMaxResource);
  json["status"] = absl::StatusCodeToString(entry.status);
  json["peer"] = entry.peer;
  // What is no UTF-8 comes from a client.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

absl::Status AuditLog::Check(const std::string& path) {
  const base::UniqueFd file = Open(path);
  if (file.get() >= 0) return absl::OkStatus();
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "AUDIT_LOG_UNWRITABLE",
                        absl::StrCat("\"", path, "\" cannot be written: ",
                                     absl::ErrnoToStatus(errno, "open").message()),
                        {{"file", path}});
}

AuditLog::AuditLog(std::string path) : path_(std::move(path)) {}

void AuditLog::Write(const AuditEntry& entry) {
  const std::string line = ToJsonLine(entry);
  absl::MutexLock lock(&mu_);
  const absl::Status status = Append(path_, line);
  if (status.ok()) return;
  base::Log(base::LogLevel::kError, "the audit log cannot be written",
            {{"file", path_}, {"error", status}, {"who", entry.who}, {"method", entry.method}});
}

}  // namespace mtmc::access
