// SPDX-License-Identifier: Apache-2.0
#include "client/cli/job_details.h"

#include <catch2/catch.hpp>
#include <sstream>

namespace mtmc::client {
namespace {

using Catch::Matchers::Contains;

v1::Job Job(v1::Job::State state) {
  v1::Job job;
  job.set_name("projects/p/jobs/j");
  job.set_state(state);
  job.mutable_evaluation()->set_min_isolation(v1::ISOLATION_CONFINED);
  return job;
}

v1::Worker Worker(v1::Isolation level) {
  v1::Worker worker;
  worker.set_name("workers/w");
  worker.set_state(v1::Worker::STATE_RUNNING);
  worker.set_isolation_level(level);
  worker.mutable_device()->add_dialects(v1::DIALECT_OPENCL);
  return worker;
}

TEST_CASE("A job that no worker may serve is said to wait, and why", "[cli]") {
  const auto state = GENERATE(v1::Job::STATE_PENDING, v1::Job::STATE_RUNNING);

  CHECK(WhyJobWaits(Job(state), {Worker(v1::ISOLATION_RESTRICTED)}) ==
        "no worker with isolation confined is there; workers have restricted; see mtmc doctor");
}

TEST_CASE("A job that waits for its turn, is served or has ended needs no reason", "[cli]") {
  v1::Worker serving = Worker(v1::ISOLATION_RESTRICTED);
  serving.set_activity("projects/p/jobs/j/candidates/c0");
  v1::Worker other = Worker(v1::ISOLATION_RESTRICTED);
  other.set_activity("projects/p/jobs/j2/candidates/c0");

  CHECK(WhyJobWaits(Job(v1::Job::STATE_PENDING), {Worker(v1::ISOLATION_CONFINED)}).empty());
  CHECK(WhyJobWaits(Job(v1::Job::STATE_RUNNING), {serving}).empty());
  CHECK_FALSE(WhyJobWaits(Job(v1::Job::STATE_RUNNING), {other}).empty());
  CHECK(WhyJobWaits(Job(v1::Job::STATE_SUCCEEDED), {}).empty());
}

TEST_CASE("Baselines are drawn with their noise and number of samples", "[cli]") {
  v1::Inspection inspection;
  v1::BaselineTime& eager = *inspection.add_baselines();
  eager.set_baseline(v1::BASELINE_EAGER);
  eager.set_median_seconds(1.25e-3);
  eager.set_noise_ratio(0.0123);
  eager.set_samples(40);
  eager.set_clock_hertz(1.98e9);
  inspection.add_baselines()->set_baseline(v1::BASELINE_COMPILE);
  std::ostringstream out;

  PrintBaselines(inspection, out);

  CHECK_THAT(out.str(), Contains("eager          1.25 ms  1.23 %       40  1.98 GHz\n"));
  CHECK_THAT(out.str(), Contains("torch.compile") && Contains("-\n"));
}

TEST_CASE("Nothing is drawn before the baselines were timed", "[cli]") {
  std::ostringstream out;

  PrintBaselines({}, out);

  CHECK(out.str().empty());
}

}  // namespace
}  // namespace mtmc::client
