// SPDX-License-Identifier: Apache-2.0
#include "server/store/quota_ledger.h"

#include "server/store/job_store.h"

namespace mtmc::store {

QuotaLedger::QuotaLedger(const std::vector<ProjectQuota>& quotas,
                         const std::vector<Reservation>& reservations) {
  for (const ProjectQuota& quota : quotas) {
    for (const auto& [resource, account] : quota.accounts) {
      accounts_[quota.project][resource] = {.allowed = account.allowed, .used = account.used};
    }
  }
  for (const Reservation& reservation : reservations) {
    accounts_[ProjectOfJob(reservation.job)][reservation.resource].reserved += reservation.amount;
    held_[reservation.job][reservation.resource] = reservation.amount;
  }
}

absl::StatusOr<QuotaLedger::Posting> QuotaLedger::Weigh(const Write& write) const {
  Posting posting{.job = write.job_name};
  const auto account = [&](const std::string& project, QuotaResource resource) -> QuotaAccount& {
    const auto [entry, is_new] = posting.accounts.try_emplace({project, resource});
    if (is_new) entry->second = AccountOf(project, resource);
    return entry->second;
  };
  const auto held = [&](QuotaResource resource) -> int64_t& {
    const auto [entry, is_new] = posting.held.try_emplace(resource);
    if (is_new) entry->second = HeldBy(write.job_name, resource);
    return entry->second;
  };
  for (const QuotaLimit& limit : write.limits) {
    QuotaAccount& limited = account(limit.project, limit.resource);
    if (limit.is_set) limited.allowed = limit.allowed;
    if (limit.resets_use) limited.used = 0;
  }
  const std::string project = ProjectOfJob(write.job_name);
  for (const QuotaChange& change : write.quota) {
    QuotaAccount& changed = account(project, change.resource);
    int64_t& before = held(change.resource);
    const QuotaStep step = QuotaStep::Of(change, before);
    const int64_t more = step.held + step.counted - before;
    // What was used is used; only a reservation can be refused.
    if (change.reserved && *change.reserved > 0 && more > 0 && changed.allowed &&
        changed.room() < more) {
      return QuotaExceeded(project, change.resource, changed);
    }
    changed.used += step.counted;
    changed.reserved += step.held - before;
    before = step.held;
  }
  if (!write.is_job_deleted) return posting;
  for (const QuotaResource resource : kQuotaResources) {
    int64_t& before = held(resource);
    if (before != 0) account(project, resource).reserved -= before;
    before = 0;
  }
  return posting;
}

void QuotaLedger::Post(const Posting& posting) {
  for (const auto& [key, account] : posting.accounts) {
    const auto& [project, resource] = key;
    if (account != QuotaAccount()) {
      accounts_[project][resource] = account;
      continue;
    }
    const auto found = accounts_.find(project);
    if (found == accounts_.end()) continue;
    found->second.erase(resource);
    if (found->second.empty()) accounts_.erase(found);
  }
  for (const auto& [resource, amount] : posting.held) {
    if (amount != 0) {
      held_[posting.job][resource] = amount;
      continue;
    }
    const auto found = held_.find(posting.job);
    if (found == held_.end()) continue;
    found->second.erase(resource);
    if (found->second.empty()) held_.erase(found);
  }
}

QuotaAccount QuotaLedger::Find(const std::string& job, QuotaResource resource) const {
  QuotaAccount account = AccountOf(ProjectOfJob(job), resource);
  if (!account.allowed) return {.used = account.used};
  account.own = HeldBy(job, resource);
  return account;
}

std::vector<ProjectQuota> QuotaLedger::List(const std::string& project) const {
  std::vector<ProjectQuota> listed;
  for (const auto& [name, accounts] : accounts_) {
    if (project.empty() || project == name)
      listed.push_back({.project = name, .accounts = accounts});
  }
  return listed;
}

QuotaAccount QuotaLedger::AccountOf(const std::string& project, QuotaResource resource) const {
  const auto found = accounts_.find(project);
  if (found == accounts_.end() || !found->second.contains(resource)) return {};
  return found->second.at(resource);
}

int64_t QuotaLedger::HeldBy(const std::string& job, QuotaResource resource) const {
  const auto found = held_.find(job);
  if (found == held_.end() || !found->second.contains(resource)) return 0;
  return found->second.at(resource);
}

}  // namespace mtmc::store
