// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/store/job_store.h"

namespace mtmc::coordinator {

// The leases of unfinished work, those that were lost among them, by id and by the work
// that they are for. A resource; thread-compatible. A record stays where it is until it
// is forgotten.
class LeaseBook {
 public:
  // Null when there is none.
  store::LeaseRecord* Find(const std::string& id);
  const store::LeaseRecord* Find(const std::string& id) const;

  bool Contains(const std::string& id) const { return Find(id) != nullptr; }

  // REQUIRES: it is there.
  const store::LeaseRecord& At(const std::string& id) const;

  // Inserts or replaces by id; the work of an id never changes.
  void Put(const store::LeaseRecord& record);

  // In the order in which they came.
  std::vector<const store::LeaseRecord*> OfWork(const std::string& work) const;

  // Forgets all leases of `work`.
  void ForgetWork(const std::string& work);

 private:
  std::unordered_map<std::string, store::LeaseRecord> leases_;
  // Ids by work.
  std::unordered_map<std::string, std::vector<std::string>> works_;
};

}  // namespace mtmc::coordinator
