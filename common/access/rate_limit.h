// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace mtmc::access {

// So many calls a second for each name, with up to a second's calls at once. Thread-safe.
class RateLimit {
 public:
  // `clock` is borrowed. REQUIRES: `per_second` is above 0.
  RateLimit(double per_second, base::Clock& clock);

  // Takes one call of `name`. Zero if it may go on, else how long until the next may.
  absl::Duration Take(const std::string& name) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Bucket {
    double calls = 0;
    absl::Time filled;
  };

  const double per_second_;
  // Of a full bucket.
  const double most_;
  base::Clock& clock_;

  absl::Mutex mu_;
  // As many as there are names in the token file.
  std::map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::access
