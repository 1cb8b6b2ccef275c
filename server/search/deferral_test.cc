// SPDX-License-Identifier: Apache-2.0
#include "server/search/deferral.h"

#include <catch2/catch.hpp>

#include "server/search/known_step.h"

namespace mtmc::search {
namespace {

constexpr absl::Duration kForever = absl::InfiniteDuration();

v1::Candidate Took(int trial, int64_t seconds) {
  v1::Candidate candidate;
  candidate.set_trial(trial);
  candidate.mutable_create_time()->set_seconds(1000);
  candidate.mutable_end_time()->set_seconds(1000 + seconds);
  return candidate;
}

}  // namespace

TEST_CASE("What the built-in coder makes for a search may be confirmed later", "[search]") {
  v1::Job job;
  job.mutable_search()->mutable_mtmc();
  v1::Candidate candidate;
  candidate.set_coder(kBuiltinCoder);
  CHECK(IsDeferrable(job, candidate));

  candidate.set_coder("some/model");
  CHECK_FALSE(IsDeferrable(job, candidate));
  candidate.set_coder(kBuiltinCoder);
  job.mutable_search()->mutable_evaluate();
  CHECK_FALSE(IsDeferrable(job, candidate));
}

TEST_CASE("Confirmation waits while there is time for it twice", "[search]") {
  const absl::Duration used = absl::Seconds(2);
  Lineage lineage;
  // Of the intake's time, before there is a candidate.
  CHECK(HasTimeToDefer(lineage, used, absl::Seconds(20)));
  CHECK_FALSE(HasTimeToDefer(lineage, used, absl::Seconds(19)));
  CHECK(HasTimeToDefer(lineage, used, kForever));
  v1::Candidate start = Took(0, 0);
  start.clear_end_time();
  lineage.Put(start);
  CHECK_FALSE(HasTimeToDefer(lineage, used, absl::Seconds(19)));

  // Then of the longest candidate's.
  lineage.Put(Took(0, 1));
  CHECK(HasTimeToDefer(lineage, absl::Seconds(100), absl::Seconds(20)));
  lineage.Put(Took(1, 3));
  lineage.Put(Took(2, 1));
  CHECK_FALSE(HasTimeToDefer(lineage, used, absl::Seconds(59)));
  CHECK(HasTimeToDefer(lineage, used, absl::Seconds(60)));
  CHECK(HasTimeToDefer(lineage, used, kForever));
}

}  // namespace mtmc::search
