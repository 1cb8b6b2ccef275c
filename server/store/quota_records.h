// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/store/job_store.h"
#include "server/store/quota.h"
#include "server/store/test_records.h"

namespace mtmc::store {

// Writes of the tests of quotas.

inline constexpr char kProject[] = "projects/p";
inline constexpr auto kTime = QuotaResource::kDeviceTime;

inline Write Open(const std::string& job) {
  return {.job_name = job,
          .new_job = MakeJob(job),
          .quota = {{.resource = QuotaResource::kOpenJobs, .reserved = 1}}};
}

inline Write Limit(QuotaResource resource, std::optional<int64_t> allowed) {
  return {.limits = {{.project = kProject, .resource = resource, .allowed = allowed}}};
}

inline Write Change(const std::string& job, std::optional<int64_t> reserved, int64_t used = 0) {
  return {.job_name = job, .quota = {{.resource = kTime, .reserved = reserved, .used = used}}};
}

}  // namespace mtmc::store
