// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/quota.h"

namespace mtmc::store {

struct Write;

// The accounts of all projects in memory, with every Write that was posted to them: what
// JobStore promises of quotas, without a disk. A value; thread-compatible. An open job
// takes some 200 bytes.
class QuotaLedger {
 public:
  struct Reservation {
    std::string job;
    QuotaResource resource = QuotaResource::kOpenJobs;
    int64_t amount = 0;
  };

  // What a Write makes of accounts, and of what its job holds.
  struct Posting {
    std::string job{};
    std::map<std::pair<std::string, QuotaResource>, QuotaAccount> accounts{};
    std::map<QuotaResource, int64_t> held{};
  };

  QuotaLedger() = default;

  // As a store has them. What is reserved in `quotas` is not looked at: `reservations` are
  // all that there are.
  QuotaLedger(const std::vector<ProjectQuota>& quotas,
              const std::vector<Reservation>& reservations);

  // RESOURCE_EXHAUSTED with reason QUOTA_EXCEEDED when the project has no room for what
  // `write` reserves. Changes nothing.
  absl::StatusOr<Posting> Weigh(const Write& write) const;

  // REQUIRES: nothing was posted since it was weighed.
  void Post(const Posting& posting);

  // As JobStore::FindQuota and JobStore::ListQuotas.
  QuotaAccount Find(const std::string& job, QuotaResource resource) const;
  std::vector<ProjectQuota> List(const std::string& project) const;

 private:
  QuotaAccount AccountOf(const std::string& project, QuotaResource resource) const;
  int64_t HeldBy(const std::string& job, QuotaResource resource) const;

  // With what is reserved in all; without `own`.
  std::map<std::string, std::map<QuotaResource, QuotaAccount>> accounts_;
  // By job, what is not 0.
  std::unordered_map<std::string, std::map<QuotaResource, int64_t>> held_;
};

}  // namespace mtmc::store
