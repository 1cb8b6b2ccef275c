// SPDX-License-Identifier: Apache-2.0
#include "server/search/wall_time.h"

#include <catch2/catch.hpp>

#include "common/testing/fake_clock.h"

namespace mtmc::search {
namespace {

v1::Job Started(int64_t seconds) {
  v1::Job job;
  job.set_state(v1::Job::STATE_RUNNING);
  job.mutable_start_time()->set_seconds(1'700'000'000);
  job.mutable_budget_use()->mutable_wall_time()->set_seconds(seconds);
  return job;
}

TEST_CASE("Wall time goes on from what the record says", "[wall_time]") {
  testing::FakeClock clock;
  WallTime time(clock);

  time.Load(Started(7));
  clock.Advance(absl::Seconds(5));

  CHECK(time.Elapsed() == absl::Seconds(12));
  CHECK(time.ToProto().seconds() == 12);
}

TEST_CASE("Wall time of a search that has not started is nothing", "[wall_time]") {
  testing::FakeClock clock;
  WallTime time(clock);

  time.Load(v1::Job());
  clock.Advance(absl::Seconds(5));
  CHECK(time.Elapsed() == absl::ZeroDuration());

  time.Run();
  clock.Advance(absl::Seconds(3));
  CHECK(time.Elapsed() == absl::Seconds(3));
}

TEST_CASE("Wall time stands while a job is paused", "[wall_time]") {
  testing::FakeClock clock;
  WallTime time(clock);
  time.Load(Started(0));
  clock.Advance(absl::Seconds(1));

  time.Stop();
  clock.Advance(absl::Hours(1));
  time.Stop();
  CHECK(time.Elapsed() == absl::Seconds(1));
  time.Run();
  clock.Advance(absl::Seconds(1));
  time.Run();

  CHECK(time.Elapsed() == absl::Seconds(2));
  v1::Job paused = Started(9);
  paused.set_state(v1::Job::STATE_PAUSED);
  time.Load(paused);
  clock.Advance(absl::Seconds(1));
  CHECK(time.Elapsed() == absl::Seconds(9));
}

TEST_CASE("Wall time does not hear of a clock that is set", "[wall_time]") {
  testing::FakeClock clock;
  WallTime time(clock);
  time.Load(Started(0));

  clock.Set(clock.Now() + absl::Hours(1));
  CHECK(time.Elapsed() == absl::ZeroDuration());
  clock.Set(clock.Now() - absl::Hours(2));

  CHECK(time.Elapsed() == absl::ZeroDuration());
}

}  // namespace
}  // namespace mtmc::search
