// SPDX-License-Identifier: Apache-2.0
#include "server/store/job_store.h"

#include <utility>

#include "common/base/status_macros.h"

namespace mtmc::store {
namespace {

constexpr int kEventsPerRead = 500;

}  // namespace

bool ChangesJob(const Write& write) {
  return write.job || !write.events.empty() || write.superseded || write.is_job_deleted ||
         !write.quota.empty();
}

absl::StatusOr<std::vector<v1::JobEvent>> JobStore::ReadLineage(const std::string& job) {
  std::vector<v1::JobEvent> all;
  while (true) {
    const int64_t cursor = all.empty() ? 0 : all.back().sequence();
    MTMC_ASSIGN_OR_RETURN(std::vector<v1::JobEvent> events,
                          ReadEvents(job, cursor, kEventsPerRead));
    for (v1::JobEvent& event : events) all.push_back(std::move(event));
    if (events.size() < kEventsPerRead) return all;
  }
}

}  // namespace mtmc::store
