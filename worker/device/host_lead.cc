// SPDX-License-Identifier: Apache-2.0
#include "worker/device/host_lead.h"

#include <algorithm>

namespace mtmc::worker {

bool HostLead::Note(bool is_late) {
  const bool is_dropped = is_late && passes_ < kMostPasses;
  if (is_dropped && was_late_) {
    passes_ = std::min(passes_ + std::max(passes_ / 2, 1), kMostPasses);
    was_late_ = false;
  } else {
    was_late_ = is_late;
  }
  return is_dropped;
}

void HostLead::Reset() { *this = HostLead(); }

}  // namespace mtmc::worker
