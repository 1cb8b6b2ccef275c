// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/lease_book.h"

#include "common/base/check.h"

namespace mtmc::coordinator {

store::LeaseRecord* LeaseBook::Find(const std::string& id) {
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : &found->second;
}

const store::LeaseRecord* LeaseBook::Find(const std::string& id) const {
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : &found->second;
}

const store::LeaseRecord& LeaseBook::At(const std::string& id) const {
  const store::LeaseRecord* record = Find(id);
  MTMC_CHECK(record != nullptr);
  return *record;
}

void LeaseBook::Put(const store::LeaseRecord& record) {
  const auto [found, is_new] = leases_.insert_or_assign(record.id, record);
  if (is_new) works_[record.work].push_back(record.id);
}

std::vector<const store::LeaseRecord*> LeaseBook::OfWork(const std::string& work) const {
  std::vector<const store::LeaseRecord*> leases;
  const auto found = works_.find(work);
  if (found == works_.end()) return leases;
  for (const std::string& id : found->second) leases.push_back(&At(id));
  return leases;
}

void LeaseBook::ForgetWork(const std::string& work) {
  const auto found = works_.find(work);
  if (found == works_.end()) return;
  for (const std::string& id : found->second) leases_.erase(id);
  works_.erase(found);
}

}  // namespace mtmc::coordinator
