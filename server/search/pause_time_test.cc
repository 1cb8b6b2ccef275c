// SPDX-License-Identifier: Apache-2.0
#include "server/search/pause_time.h"

#include <catch2/catch.hpp>

#include "google/protobuf/util/time_util.h"

namespace mtmc::search {
namespace {

using google::protobuf::util::TimeUtil;

v1::JobEvent Event(v1::Job::State state, int64_t seconds, bool has_started = true) {
  v1::JobEvent event;
  event.mutable_time()->set_seconds(seconds);
  event.mutable_job()->set_state(state);
  if (has_started) event.mutable_job()->mutable_start_time()->set_seconds(1);
  return event;
}

int64_t Seconds(const PauseTime& pauses, int64_t now) {
  return TimeUtil::DurationToSeconds(pauses.Until(TimeUtil::SecondsToTimestamp(now)));
}

TEST_CASE("PauseTime adds up the pauses of a log", "[search]") {
  PauseTime pauses;

  pauses.Apply(Event(v1::Job::STATE_RUNNING, 10));
  CHECK(Seconds(pauses, 20) == 0);
  pauses.Apply(Event(v1::Job::STATE_PAUSED, 20));
  // What was finished during the pause is recorded in it.
  pauses.Apply(Event(v1::Job::STATE_PAUSED, 25));
  CHECK(Seconds(pauses, 50) == 30);
  pauses.Apply(Event(v1::Job::STATE_RUNNING, 60));
  CHECK(Seconds(pauses, 100) == 40);
  pauses.Apply(Event(v1::Job::STATE_PAUSED, 100));
  pauses.Apply(Event(v1::Job::STATE_CANCELLING, 107));

  CHECK(Seconds(pauses, 200) == 47);
}

TEST_CASE("PauseTime counts no pause before the search has started", "[search]") {
  PauseTime pauses;

  pauses.Apply(Event(v1::Job::STATE_PAUSED, 10, /*has_started=*/false));
  pauses.Apply(Event(v1::Job::STATE_PENDING, 20, /*has_started=*/false));
  pauses.Apply(Event(v1::Job::STATE_RUNNING, 30));

  CHECK(Seconds(pauses, 40) == 0);
}

TEST_CASE("PauseTime ignores events that are not of the job", "[search]") {
  PauseTime pauses;
  pauses.Apply(Event(v1::Job::STATE_PAUSED, 10));
  v1::JobEvent notice;
  notice.mutable_time()->set_seconds(20);
  notice.set_notice("x");

  pauses.Apply(notice);

  CHECK(Seconds(pauses, 30) == 20);
}

}  // namespace
}  // namespace mtmc::search
