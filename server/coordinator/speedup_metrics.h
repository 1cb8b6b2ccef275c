// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <string>

#include "common/metrics/metrics.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/job.pb.h"

namespace mtmc::coordinator {

// What jobs achieve and cost, for the dashboard of kernel speedups. Names that come
// from users are bounded: projects, products and templates by BoundedLabel, problems by
// keeping the newest `max_problems` of them; names of jobs, users and candidates are no
// labels. Every call is made on the event loop.
class SpeedupMetrics {
 public:
  // Of a problem, three series: enough for what a team works on in a week.
  static constexpr size_t kMaxProblems = 100;

  // The registry is borrowed.
  explicit SpeedupMetrics(metrics::Registry& registry, size_t max_problems = kMaxProblems)
      : registry_(registry), max_problems_(max_problems) {}

  // A trial of `job` is over: evaluated, or given up by its coder.
  void CountCandidate(const v1::Job& job, const v1::Candidate& candidate);

  // Problems are another coordinator's to show.
  void ForgetProblems();

  // The job has ended; `best` is its best candidate, null if it has none.
  void CountEnd(const v1::Job& job, const v1::Candidate* best);

 private:
  // By which the numbers of a job are told apart.
  metrics::Labels LabelsOf(const v1::Job& job);
  void ShowBest(const v1::Job& job);
  void ObserveWinner(const v1::Job& job, const v1::Candidate& best);

  metrics::Registry& registry_;
  const size_t max_problems_;
  metrics::BoundedLabel projects_{20};
  metrics::BoundedLabel products_{20};
  metrics::BoundedLabel templates_{50};
  metrics::BoundedLabel coders_{10};
  // Labels of mtmc_problem_best_speedup_ratio that are served, the newest last.
  std::list<metrics::Labels> problems_;
};

}  // namespace mtmc::coordinator
