// SPDX-License-Identifier: Apache-2.0
#include "tests/load/tally.h"

#include <catch2/catch.hpp>

#include "google/protobuf/util/time_util.h"

namespace mtmc::load {
namespace {

constexpr char kCandidate[] = "projects/p/jobs/j/candidates/c1";

const absl::Time kStart = absl::FromUnixSeconds(1000);

v1::Lease LeaseOf(const std::string& id) {
  v1::Lease lease;
  lease.set_id(id);
  lease.set_job("projects/p/jobs/j");
  lease.set_candidate(kCandidate);
  return lease;
}

v1::JobEvent CandidateEvent(v1::Candidate::State state, absl::Time time = kStart) {
  v1::JobEvent event;
  *event.mutable_time() =
      google::protobuf::util::TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(time));
  event.mutable_candidate()->set_name(kCandidate);
  event.mutable_candidate()->set_state(state);
  event.mutable_candidate()->mutable_program();
  return event;
}

TEST_CASE("The wait for a lease is known whichever of its two times comes first") {
  const bool lease_is_first = GENERATE(false, true);
  Tally tally;
  tally.Begin(kStart);
  const auto note_lease = [&] { tally.NoteLease(LeaseOf("a"), kStart + absl::Milliseconds(30)); };
  if (lease_is_first) note_lease();
  tally.NoteEvent(CandidateEvent(v1::Candidate::STATE_PENDING), true, true);
  if (!lease_is_first) note_lease();
  const Totals totals = tally.Read(kStart + absl::Seconds(1));
  CHECK(totals.ready_to_lease.count == 1);
  CHECK(totals.ready_to_lease.p99_ms == Approx(30));
}

TEST_CASE("Waits that began before the count are left out") {
  Tally tally;
  tally.NoteEvent(CandidateEvent(v1::Candidate::STATE_PENDING), true, true);
  tally.Begin(kStart + absl::Seconds(1));
  tally.NoteLease(LeaseOf("a"), kStart + absl::Seconds(2));
  CHECK(tally.Read(kStart + absl::Seconds(3)).ready_to_lease.count == 0);
}

TEST_CASE("Work under a second lease is a fault, the same lease again is none") {
  Tally tally;
  tally.NoteLease(LeaseOf("a"), kStart);
  tally.NoteLease(LeaseOf("a"), kStart);
  CHECK(tally.Read(kStart).is_correct());
  tally.NoteLease(LeaseOf("b"), kStart);
  CHECK(tally.Read(kStart).repeated_leases == 1);
  CHECK_FALSE(tally.Read(kStart).is_correct());
}

TEST_CASE("Events out of order and candidates finished twice are faults, outages are none") {
  Tally tally;
  tally.NoteBreak();
  CHECK(tally.Read(kStart).is_correct());
  SECTION("events") { tally.NoteEvent(CandidateEvent(v1::Candidate::STATE_RUNNING), false, true); }
  SECTION("candidates") { tally.NoteFinishedTwice(); }
  SECTION("errors") { tally.NoteError(absl::InternalError("x")); }
  CHECK_FALSE(tally.Read(kStart).is_correct());
}

TEST_CASE("Percentiles are of the durations that were there") {
  std::vector<absl::Duration> durations;
  for (int ms = 100; ms >= 0; --ms) durations.push_back(absl::Milliseconds(ms));
  const Spread spread = SpreadOf(durations);
  CHECK(spread.count == 101);
  CHECK(spread.p50_ms == Approx(50));
  CHECK(spread.p99_ms == Approx(99));
  CHECK(SpreadOf({}).p99_ms == 0);
}

}  // namespace
}  // namespace mtmc::load
