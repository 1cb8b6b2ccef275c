// SPDX-License-Identifier: Apache-2.0
#include "common/access/rate_limit.h"

#include <algorithm>

namespace mtmc::access {

RateLimit::RateLimit(double per_second, base::Clock& clock)
    : per_second_(per_second), most_(std::max(1.0, per_second)), clock_(clock) {}

absl::Duration RateLimit::Take(const std::string& name) {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mu_);
  const auto [found, is_new] = buckets_.try_emplace(name, Bucket{.calls = most_, .filled = now});
  Bucket& bucket = found->second;
  // A clock that was set back fills nothing.
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(now - bucket.filled));
  bucket.calls = std::min(most_, bucket.calls + seconds * per_second_);
  bucket.filled = now;
  if (bucket.calls >= 1) {
    bucket.calls -= 1;
    return absl::ZeroDuration();
  }
  return absl::Seconds((1 - bucket.calls) / per_second_);
}

}  // namespace mtmc::access
