// SPDX-License-Identifier: Apache-2.0
#include "server/search/record_key.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/rpc/error.h"
#include "kernel/schedule/schedule.h"

namespace mtmc::search {
namespace {

// Of a SHA-256 in hex: names are looked at, and 80 bits do not collide.
constexpr size_t kIdLetters = 20;
// Longer ones are no task of a network that can be traced.
constexpr size_t kMaxTaskBytes = 1 << 20;

void Add(base::Sha256Builder& hash, const std::string& part) {
  hash.Append(absl::StrCat(part.size(), ":"));
  hash.Append(part);
}

void AddScope(base::Sha256Builder& hash, const v1::TunedRecord& record) {
  Add(hash, record.device_class().product());
  Add(hash, record.device_class().driver_version());
  Add(hash, record.device_class().toolchain_version());
  Add(hash, v1::Dialect_Name(record.dialect()));
  Add(hash, v1::Precision_Name(record.precision()));
}

absl::Status Invalid(const std::string& why) {
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_RECORD",
                        absl::StrCat("the record ", why, "; export it anew"));
}

// `n0`, `n1`, ... once each.
absl::Status CheckNodes(const kernel::Schedule& schedule, const std::string& task) {
  const auto num_nodes = std::count(task.begin(), task.end(), '\n');
  std::set<std::string> expected;
  for (int64_t i = 0; i < num_nodes; ++i) expected.insert(absl::StrCat("n", i));
  for (const kernel::KernelGroup& group : schedule.groups) {
    for (const std::string& node : group.nodes) {
      if (expected.erase(node) == 0) {
        return Invalid(absl::StrCat("has node `", node, "`, which its task has not"));
      }
    }
  }
  return expected.empty() ? absl::OkStatus()
                          : Invalid(absl::StrCat("lacks node `", *expected.begin(), "`"));
}

bool IsTime(double seconds) { return std::isfinite(seconds) && seconds > 0; }

}  // namespace

std::string RecordName(const std::string& project, const v1::TunedRecord& record) {
  base::Sha256Builder hash;
  AddScope(hash, record);
  Add(hash, record.task());
  return absl::StrCat(project, "/records/r", hash.Finish().sha256_hex.substr(0, kIdLetters));
}

std::string RecordAnchor(const v1::TunedRecord& record) {
  base::Sha256Builder hash;
  AddScope(hash, record);
  Add(hash, record.start_groups().empty() ? "" : record.start_groups(0).task());
  return hash.Finish().sha256_hex;
}

absl::Status CheckRecord(const v1::TunedRecord& record) {
  if (record.device_class().product().empty()) return Invalid("names no device");
  if (record.dialect() == v1::DIALECT_UNSPECIFIED) return Invalid("has no dialect");
  if (record.task().empty() || record.task().size() > kMaxTaskBytes) {
    return Invalid("has no task, or one of more than a mebibyte");
  }
  if (record.start_groups().empty() || record.start_groups(0).offset() != 0) {
    return Invalid("does not say which groups its part begins as");
  }
  for (int i = 1; i < record.start_groups_size(); ++i) {
    if (record.start_groups(i).offset() <= record.start_groups(i - 1).offset()) {
      return Invalid("has start groups out of order");
    }
  }
  if (!IsTime(record.seconds()) || !IsTime(record.start_seconds())) {
    return Invalid("has no times above 0");
  }
  const auto schedule = kernel::ParseSchedule(record.schedule());
  if (!schedule.ok()) {
    return Invalid(absl::StrCat("has an unreadable schedule (", schedule.status().message(), ")"));
  }
  if (!schedule->rewrites.empty()) return Invalid("rewrites a graph that it has not");
  return CheckNodes(*schedule, record.task());
}

}  // namespace mtmc::search
