// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/profile/metric_table.h"
#include "mtmc/v1/evaluation.pb.h"

namespace mtmc::worker {

// What keeps a kernel from being faster, as its counters tell it. A value.
struct Bottleneck {
  // LIMIT_UNSPECIFIED when the counters do not say.
  v1::Profile::Limit limit = v1::Profile::LIMIT_UNSPECIFIED;
  // Half a sentence, such as `device memory is at 82 % of its peak`.
  std::string reason;
};

// By a table: a busy part of the device first, and where nothing is busy the
// wait that most warps are in. Up to two remarks on waste follow: scattered
// accesses, bank conflicts, spills, empty multiprocessors, barriers.
Bottleneck FindBottleneck(const profile::Values& metrics);

}  // namespace mtmc::worker
