// SPDX-License-Identifier: Apache-2.0
#include "common/daemon/clock_watch.h"

#include <catch2/catch.hpp>
#include <vector>

#include "absl/synchronization/mutex.h"

namespace mtmc::daemon {
namespace {

// Clocks that go on by a second at each look, and one of which can be set.
class Clocks {
 public:
  absl::Duration Steady() {
    absl::MutexLock lock(&mu_);
    return steady_ += absl::Seconds(1);
  }

  // Read before the steady one of the same look.
  absl::Duration Wall() {
    absl::MutexLock lock(&mu_);
    ++num_looks_;
    return steady_ + absl::Seconds(1) + ahead_;
  }

  // Not before the next look.
  void Set(absl::Duration ahead) {
    absl::MutexLock lock(&mu_);
    ahead_ = ahead;
  }

  void AwaitLooks(int count) {
    absl::MutexLock lock(&mu_);
    const int wanted = num_looks_ + count;
    const auto is_reached = [&] { return num_looks_ >= wanted; };
    mu_.Await(absl::Condition(&is_reached));
  }

 private:
  absl::Mutex mu_;
  absl::Duration steady_, ahead_;
  int num_looks_ = 0;
};

TEST_CASE("A clock watch tells of a clock that is set back, and of nothing else", "[daemon]") {
  Clocks clocks;
  absl::Mutex mu;
  std::vector<absl::Duration> steps;
  const ClockWatch watch({.wall = [&] { return clocks.Wall(); },
                          .steady = [&] { return clocks.Steady(); },
                          .interval = absl::Milliseconds(1),
                          .on_set_back =
                              [&](absl::Duration step) {
                                absl::MutexLock lock(&mu);
                                steps.push_back(step);
                              }});
  const auto set = [&](absl::Duration ahead) {
    clocks.AwaitLooks(2);
    clocks.Set(ahead);
    clocks.AwaitLooks(2);
  };
  set(absl::Seconds(-1));
  set(absl::Hours(1));
  set(absl::ZeroDuration());
  set(absl::Seconds(2));
  set(absl::Seconds(-1));

  absl::MutexLock lock(&mu);
  CHECK(steps == std::vector{absl::Hours(1), absl::Seconds(3)});
}

}  // namespace
}  // namespace mtmc::daemon
