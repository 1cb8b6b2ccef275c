// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace mtmc::store {

// What a project may use so much of. The numbers are recorded; another resource, such as
// money, is another number.
enum class QuotaResource {
  // Jobs that have not ended; each holds one.
  kOpenJobs = 1,
  // Device time of evaluations, in microseconds.
  kDeviceTime = 2,
  // Tokens of language models.
  kTokens = 3,
};

inline constexpr QuotaResource kQuotaResources[] = {
    QuotaResource::kOpenJobs, QuotaResource::kDeviceTime, QuotaResource::kTokens};

// `open_jobs`, `device_time` or `tokens`.
std::string_view QuotaResourceName(QuotaResource resource);

// The account of one resource of a project. A value.
struct QuotaAccount {
  // Nothing is no limit.
  std::optional<int64_t> allowed;
  // Used for good.
  int64_t used = 0;
  // Held by jobs that may use it, or give it back.
  int64_t reserved = 0;
  // Of it, what the job holds that asked (JobStore::FindQuota).
  int64_t own = 0;

  // How much more may be reserved. REQUIRES: allowed.
  int64_t room() const { return std::max<int64_t>(*allowed - used - reserved, 0); }

  bool operator==(const QuotaAccount&) const = default;
};

// All accounts of `project`, which is `projects/{project}`.
struct ProjectQuota {
  std::string project;
  std::map<QuotaResource, QuotaAccount> accounts;
};

// A change of what the job of a Write holds and has used.
//
// A reservation is a step: what it holds from then on. What is used is taken from what the
// job holds, and no more than that is counted where it holds anything: so that a project
// that reserves before it uses is never above its limit. Where it holds nothing, because
// there was no limit when it began, all is counted.
struct QuotaChange {
  QuotaResource resource = QuotaResource::kOpenJobs;
  // What the job holds from now on; nothing leaves what is not used. More than it held is
  // refused with QUOTA_EXCEEDED if the project has no room for it.
  std::optional<int64_t> reserved{};
  // What it has used since the last change.
  int64_t used = 0;
};

// A limit that an administrator sets.
struct QuotaLimit {
  // `projects/{project}`.
  std::string project;
  QuotaResource resource = QuotaResource::kOpenJobs;
  // Whether `allowed` replaces the limit.
  bool is_set = true;
  std::optional<int64_t> allowed{};
  // Counts what is used from zero.
  bool resets_use = false;
};

// What a change makes of an account, and of what its job held.
struct QuotaStep {
  int64_t held = 0;
  // Added to what the project has used.
  int64_t counted = 0;

  static QuotaStep Of(const QuotaChange& change, int64_t held_before);
};

// RESOURCE_EXHAUSTED with reason QUOTA_EXCEEDED, which says what is used and allowed.
absl::Status QuotaExceeded(const std::string& project, QuotaResource resource,
                           const QuotaAccount& account);

// What an account that is full says to people, as `7200 s of device time used, 7200 s allowed`.
std::string DescribeAccount(QuotaResource resource, const QuotaAccount& account);

// `projects/p/jobs/j` to `projects/p`.
std::string ProjectOfJob(const std::string& job);

}  // namespace mtmc::store
