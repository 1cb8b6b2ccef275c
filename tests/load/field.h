// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "tests/load/call_set.h"

namespace mtmc::load {

class Pacer;
class Tally;

// What all parts of a load share. Borrowed by each.
struct Field {
  Tally& tally;
  Pacer& pacer;
  CallSet& calls;
};

// Whether a call is to be made again: there is no coordinator, or it is overloaded.
inline bool IsPassing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status);
}

}  // namespace mtmc::load
