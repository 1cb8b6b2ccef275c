// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/job_details.h"
#include "client/cli/job_request.h"
#include "client/cli/job_view.h"
#include "client/cli/output.h"
#include "client/cli/watch.h"
#include "client/cli/winner.h"
#include "common/base/enum_word.h"
#include "common/base/status_macros.h"

namespace mtmc::client {
namespace {

std::string StateText(v1::Job::State state) {
  return base::EnumWord(v1::Job::State_Name(state), "STATE_");
}

void PrintJobs(const std::vector<v1::Job>& jobs) {
  Table table({"job", "problem", "state", ">trials", ">speedup", "ended by"});
  for (const v1::Job& job : jobs) {
    table.AddRow({ShortName(job.name()), job.problem().display_name(), StateText(job.state()),
                  absl::StrCat(job.budget_use().trials()),
                  job.has_best_speedup() ? FormatSpeedup(job.best_speedup()) : "-",
                  EndReasonText(job)});
  }
  table.Print(std::cout);
}

// Whose it is and what language models took, where there is something to say.
void PrintUse(const v1::Job& job) {
  const v1::BudgetUse& use = job.budget_use();
  if (!job.creator().empty()) std::cout << "\ncreated by " << job.creator() << "\n";
  if (use.tokens() == 0) return;
  std::cout << "\n" << use.tokens() << " tokens of language models";
  if (use.cost_micros() > 0) std::cout << ", " << FormatDollars(use.cost_micros());
  std::cout << "\n";
}

absl::StatusOr<ExitCode> Follow(Session& session, const std::string& name,
                                const JobsOptions& options) {
  const bool is_silent = options.common.is_json || options.common.is_quiet;
  std::ostream null(nullptr);
  JobView view(is_silent ? null : std::cout, !is_silent && IsInteractive());
  const absl::Duration timeout = options.timeout_seconds > 0
                                     ? absl::Seconds(options.timeout_seconds)
                                     : absl::InfiniteDuration();
  const absl::Status followed = FollowJob(session, name, view, timeout);
  if (absl::IsCancelled(followed)) {
    std::cerr << "\ndetached; watch it again with:\n  mtmc jobs watch " << ShortName(name) << "\n";
    return kExitInterrupted;
  }
  MTMC_RETURN_IF_ERROR(followed);
  view.PrintSummary();
  if (options.common.is_json) PrintJson(*view.job(), std::cout);
  if (view.job()->state() == v1::Job::STATE_CANCELLED) return kExitCancelled;
  return view.job()->state() == v1::Job::STATE_SUCCEEDED ? kExitOk : kExitJobFailed;
}

absl::StatusOr<ExitCode> Create(const JobsOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  MTMC_ASSIGN_OR_RETURN(v1::CreateJobRequest request,
                        MakeJobRequest(*session.api, options.common, options.job));
  request.set_validate_only(options.is_validate_only);
  MTMC_ASSIGN_OR_RETURN(const v1::Job job, session.api->CreateJob(request));
  if (options.is_validate_only) {
    std::cerr << "the job is valid; nothing was created\n";
    return kExitOk;
  }
  if (options.is_waiting) return Follow(session, job.name(), options);
  if (options.common.is_json) {
    PrintJson(job, std::cout);
  } else {
    std::cout << ShortName(job.name()) << "\n";
  }
  return kExitOk;
}

absl::StatusOr<ExitCode> List(const JobsOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  MTMC_ASSIGN_OR_RETURN(const std::vector<v1::Job> jobs,
                        session.api->ListJobs(absl::StrCat("projects/", options.common.project),
                                              options.limit, options.filter, options.order_by));
  if (!options.common.is_json) {
    PrintJobs(jobs);
    return kExitOk;
  }
  v1::ListJobsResponse response;
  response.mutable_jobs()->Assign(jobs.begin(), jobs.end());
  PrintJson(response, std::cout);
  return kExitOk;
}

absl::StatusOr<ExitCode> Get(const JobsOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  MTMC_ASSIGN_OR_RETURN(const v1::Job job,
                        session.api->GetJob(JobName(options.common.project, options.name)));
  if (options.common.is_json) {
    PrintJson(job, std::cout);
    return kExitOk;
  }
  PrintJobs({job});
  PrintUse(job);
  if (job.has_failure())
    std::cout << "\n" << job.failure().message() << " [" << job.failure().reason() << "]\n";
  if (!job.has_end_time() && job.state() != v1::Job::STATE_PAUSED) {
    MTMC_ASSIGN_OR_RETURN(const std::vector<v1::Worker> workers, session.api->ListWorkers());
    const std::string why = WhyJobWaits(job, workers);
    if (!why.empty()) std::cout << "\nwaits for a worker: " << why << "\n";
  }
  PrintBaselines(job.inspection(), std::cout);
  return kExitOk;
}

absl::StatusOr<ExitCode> Watch(const JobsOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  const std::string name = JobName(options.common.project, options.name);
  // A wrong name is an error at once, not a stream that never begins.
  MTMC_RETURN_IF_ERROR(session.api->GetJob(name).status());
  return Follow(session, name, options);
}

absl::StatusOr<ExitCode> Cancel(const JobsOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  MTMC_ASSIGN_OR_RETURN(const v1::Job job,
                        session.api->CancelJob(JobName(options.common.project, options.name)));
  if (options.common.is_json) {
    PrintJson(job, std::cout);
  } else {
    std::cout << ShortName(job.name()) << " " << StateText(job.state()) << "\n";
  }
  return kExitOk;
}

// Of each of the jobs in turn; the first that cannot be changed ends it.
absl::StatusOr<ExitCode> Change(const JobsOptions& options,
                                absl::StatusOr<v1::Job> (Api::*change)(const std::string&)) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  for (const std::string& name : options.names) {
    MTMC_ASSIGN_OR_RETURN(const v1::Job job,
                          (*session.api.*change)(JobName(options.common.project, name)));
    if (options.common.is_json) {
      PrintJson(job, std::cout);
    } else {
      std::cout << ShortName(job.name()) << " " << StateText(job.state()) << "\n";
    }
  }
  return kExitOk;
}

absl::StatusOr<ExitCode> Delete(const JobsOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  for (const std::string& name : options.names) {
    const std::string full_name = JobName(options.common.project, name);
    MTMC_RETURN_IF_ERROR(session.api->DeleteJob(full_name));
    if (!options.common.is_json) std::cout << ShortName(full_name) << " deleted\n";
  }
  return kExitOk;
}

}  // namespace

ExitCode RunJobsCreate(const JobsOptions& options) { return Finish(Create(options)); }

ExitCode RunJobsList(const JobsOptions& options) { return Finish(List(options)); }

ExitCode RunJobsGet(const JobsOptions& options) { return Finish(Get(options)); }

ExitCode RunJobsWatch(const JobsOptions& options) { return Finish(Watch(options)); }

ExitCode RunJobsCancel(const JobsOptions& options) { return Finish(Cancel(options)); }

ExitCode RunJobsPause(const JobsOptions& options) {
  return Finish(Change(options, &Api::PauseJob));
}

ExitCode RunJobsResume(const JobsOptions& options) {
  return Finish(Change(options, &Api::ResumeJob));
}

ExitCode RunJobsDelete(const JobsOptions& options) { return Finish(Delete(options)); }

}  // namespace mtmc::client
