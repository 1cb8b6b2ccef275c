// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/speedup_metrics.h"

#include <algorithm>
#include <set>
#include <vector>

#include "common/base/enum_word.h"
#include "google/protobuf/util/time_util.h"
#include "kernel/schedule/schedule.h"

namespace mtmc::coordinator {
namespace {

using google::protobuf::util::TimeUtil;

constexpr char kBest[] = "mtmc_problem_best_speedup_ratio";
constexpr char kBestHelp[] =
    "Best verified speedup over the first baseline, of the newest job of a problem; only the "
    "problems seen last are served.";

// Most kernels gain between nothing and 5 times; above 100 it is the baseline's fault.
const std::vector<double>& SpeedupBuckets() {
  static const auto* const kBuckets = new std::vector<double>{
      0.5, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100};
  return *kBuckets;
}

// Shares of the best possible time.
const std::vector<double>& RatioBuckets() {
  static const auto* const kBuckets =
      new std::vector<double>{0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1};
  return *kBuckets;
}

// A trial takes a second or some, a job up to hours.
const std::vector<double>& WorkBuckets() {
  static const auto* const kBuckets = new std::vector<double>{
      0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400};
  return *kBuckets;
}

double SecondsOf(const google::protobuf::Duration& duration) {
  return 1e-9 * static_cast<double>(TimeUtil::DurationToNanoseconds(duration));
}

// `p` of `projects/p/jobs/j`.
std::string ProjectOf(const std::string& job) {
  const size_t begin = job.find('/') + 1;
  return job.substr(begin, job.find('/', begin) - begin);
}

// How a trial came out: what its comparison says, or why it has none.
std::string OutcomeOf(const v1::Candidate& candidate) {
  if (candidate.state() == v1::Candidate::STATE_REJECTED) return "rejected";
  const v1::Evaluation& evaluation = candidate.evaluation();
  if (evaluation.has_failure()) {
    return base::EnumWord(v1::Failure::Kind_Name(evaluation.failure().kind()), "KIND_");
  }
  if (evaluation.comparisons().empty()) return "not_compared";
  return base::EnumWord(v1::Comparison::Outcome_Name(evaluation.comparisons(0).outcome()),
                        "OUTCOME_");
}

// Templates of the built-in coder that the candidate's kernels come from; `written`
// where a model or a user wrote them.
std::set<std::string> TemplatesOf(const v1::Candidate& candidate) {
  std::set<std::string> templates;
  const auto schedule = kernel::ParseSchedule(candidate.schedule());
  if (schedule.ok()) {
    for (const kernel::KernelGroup& group : schedule->groups) templates.insert(group.template_name);
  }
  if (templates.empty()) templates.insert("written");
  return templates;
}

metrics::Labels With(metrics::Labels labels, const std::string& name, const std::string& value) {
  labels[name] = value;
  return labels;
}

}  // namespace

void SpeedupMetrics::CountCandidate(const v1::Job& job, const v1::Candidate& candidate) {
  const std::string product = products_.Of(job.device().product());
  const std::string outcome = OutcomeOf(candidate);
  registry_
      .MakeCounter("mtmc_candidates_total", "Trials that are over, by how they came out.",
                   {{"gpu_product", product},
                    {"coder", coders_.Of(candidate.coder())},
                    {"outcome", outcome}})
      .Increment();
  registry_
      .MakeHistogram("mtmc_trial_seconds", "Time from the choice of a step to its outcome.",
                     WorkBuckets(), {{"gpu_product", product}})
      .Observe(SecondsOf(candidate.end_time() - candidate.create_time()));
  for (const std::string& name : TemplatesOf(candidate)) {
    registry_
        .MakeCounter("mtmc_template_candidates_total",
                     "Trials with a kernel of the template, by how they came out.",
                     {{"template", templates_.Of(name)}, {"outcome", outcome}})
        .Increment();
  }
  ShowBest(job);
}

void SpeedupMetrics::CountEnd(const v1::Job& job, const v1::Candidate* best) {
  const metrics::Labels labels = LabelsOf(job);
  metrics::Labels ended = With(
      labels, "reason", base::EnumWord(v1::Job::EndReason_Name(job.end_reason()), "END_REASON_"));
  ended["outcome"] = base::EnumWord(v1::Job::State_Name(job.state()), "STATE_");
  registry_
      .MakeCounter("mtmc_jobs_finished_total",
                   "Jobs that have ended; those that succeeded have a verified winner.", ended)
      .Increment();
  registry_
      .MakeHistogram("mtmc_job_duration_seconds", "Time from a job's creation to its end.",
                     WorkBuckets(), labels)
      .Observe(SecondsOf(job.end_time() - job.create_time()));
  registry_
      .MakeHistogram("mtmc_job_device_seconds",
                     "Time that workers spent on the evaluations of a job.", WorkBuckets(), labels)
      .Observe(SecondsOf(job.budget_use().device_time()));
  registry_
      .MakeCounter("mtmc_job_tokens_total", "Tokens that ended jobs have used of language models.",
                   labels)
      .Increment(static_cast<double>(job.budget_use().tokens()));
  // What was best may have been confirmed since its trial, with a time of its own.
  ShowBest(job);
  if (best != nullptr && job.state() == v1::Job::STATE_SUCCEEDED) ObserveWinner(job, *best);
}

void SpeedupMetrics::ForgetProblems() {
  for (const metrics::Labels& labels : problems_) registry_.RemoveGauge(kBest, kBestHelp, labels);
  problems_.clear();
}

void SpeedupMetrics::ObserveWinner(const v1::Job& job, const v1::Candidate& best) {
  const metrics::Labels labels = LabelsOf(job);
  if (job.has_best_speedup()) {
    registry_
        .MakeHistogram("mtmc_job_speedup_ratio",
                       "Verified speedup of a job's winner over the first baseline.",
                       SpeedupBuckets(), labels)
        .Observe(job.best_speedup());
    for (const std::string& name : TemplatesOf(best)) {
      registry_
          .MakeHistogram(
              "mtmc_template_speedup_ratio",
              "Verified speedup of the winners that have a kernel of the template.",
              SpeedupBuckets(),
              {{"template", templates_.Of(name)}, {"gpu_product", labels.at("gpu_product")}})
          .Observe(job.best_speedup());
    }
  }
  const double light = best.evaluation().profile().speed_of_light_ratio();
  if (light <= 0) return;
  registry_
      .MakeHistogram("mtmc_job_speed_of_light_ratio",
                     "Best possible time by the roofline over the winner's time, 0 to 1.",
                     RatioBuckets(), labels)
      .Observe(std::min(light, 1.0));
}

metrics::Labels SpeedupMetrics::LabelsOf(const v1::Job& job) {
  return {{"project", projects_.Of(ProjectOf(job.name()))},
          {"gpu_product", products_.Of(job.device().product())}};
}

void SpeedupMetrics::ShowBest(const v1::Job& job) {
  if (max_problems_ == 0) return;
  // Bounded by the list below instead.
  metrics::BoundedLabel one(1);
  const metrics::Labels labels =
      With(LabelsOf(job), "problem", one.Of(job.problem().display_name()));
  const bool was_served = std::erase(problems_, labels) > 0;
  if (!job.has_best_speedup()) {
    if (was_served) registry_.RemoveGauge(kBest, kBestHelp, labels);
    return;
  }
  registry_.MakeGauge(kBest, kBestHelp, labels).Set(job.best_speedup());
  problems_.push_back(labels);
  if (problems_.size() <= max_problems_) return;
  registry_.RemoveGauge(kBest, kBestHelp, problems_.front());
  problems_.pop_front();
}

}  // namespace mtmc::coordinator
