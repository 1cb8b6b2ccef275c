// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "client/cli/exit_code.h"
#include "client/cli/session.h"

namespace mtmc::client {

// The commands of `mtmc`: each takes its parsed options, writes data to standard
// output and messages to standard error, and returns an exit code.

// What makes a job, for `optimize`, `jobs create` and `evaluate`.
struct JobOptions {
  std::string file;
  std::string strategy = "mtmc";
  std::string policy = "rules";
  std::string coder = "builtin";
  std::string model;
  // Least isolation of the worker; empty is whatever it has.
  std::string min_isolation;
  std::string precision = "kernelbench";
  std::string dialect;
  std::vector<std::string> baselines = {"eager"};
  std::string worker;
  int max_trials = 0;
  int max_steps = 0;
  double max_minutes = 0;
  int64_t seed = 0;
  bool is_library_forbidden = false;
  bool is_simplify_forbidden = false;
  bool omits_records = false;
  bool randomize_identity_parameters = false;
  // Inputs, parameters and buffers that no workload changes.
  std::vector<std::string> fixed;
  bool judges_nonfinite = false;
  // Program text to start from; only for `evaluate`.
  std::string program_file;
};

struct OptimizeOptions {
  CommonOptions common;
  StackOptions stack;
  JobOptions job;
  // Where the winner is written; empty means `NAME_mtmc.py` beside the problem.
  std::string output_file;
};

ExitCode RunOptimize(const OptimizeOptions& options);

// Evaluates one program against a problem and shows its verdict.
ExitCode RunEvaluate(const OptimizeOptions& options);

// Runs the local stack in the foreground until a signal.
struct UpOptions {
  CommonOptions common;
  StackOptions stack;
  std::string listen = "127.0.0.1:50151";
};

ExitCode RunUp(const UpOptions& options);

struct JobsOptions {
  CommonOptions common;
  JobOptions job;
  std::string name;
  // For commands that take several jobs.
  std::vector<std::string> names;
  int limit = 50;
  std::string filter;
  std::string order_by;
  bool is_waiting = false;
  bool is_validate_only = false;
  // Longest wait in seconds; 0 waits for ever.
  double timeout_seconds = 0;
};

ExitCode RunJobsCreate(const JobsOptions& options);
ExitCode RunJobsList(const JobsOptions& options);
ExitCode RunJobsGet(const JobsOptions& options);
ExitCode RunJobsWatch(const JobsOptions& options);
ExitCode RunJobsCancel(const JobsOptions& options);
ExitCode RunJobsPause(const JobsOptions& options);
ExitCode RunJobsResume(const JobsOptions& options);
ExitCode RunJobsDelete(const JobsOptions& options);

struct CandidatesOptions {
  CommonOptions common;
  // A job for `list`, a candidate or a job (its best) for the others.
  std::string name;
  std::string filter;
  // Second candidate of `diff`; empty means the parent.
  std::string other;
  std::string output_file;
  // For `show`: prompt and reply instead of the program.
  bool shows_exchange = false;
};

ExitCode RunCandidatesList(const CandidatesOptions& options);
ExitCode RunCandidatesShow(const CandidatesOptions& options);
ExitCode RunCandidatesDiff(const CandidatesOptions& options);
ExitCode RunExport(const CandidatesOptions& options);

struct WorkersOptions {
  CommonOptions common;
  std::string name;
  // For `list`.
  std::string filter;
  bool is_undrain = false;
};

ExitCode RunWorkersList(const WorkersOptions& options);
ExitCode RunWorkersDrain(const WorkersOptions& options);

struct RecordsOptions {
  CommonOptions common;
  // Names of records; for `delete`.
  std::vector<std::string> names;
  // What `export` writes, empty for standard output, and `import` reads.
  std::string file;
  // For `list` and `export`.
  std::string filter;
};

ExitCode RunRecordsList(const RecordsOptions& options);
ExitCode RunRecordsExport(const RecordsOptions& options);
ExitCode RunRecordsImport(const RecordsOptions& options);
ExitCode RunRecordsDelete(const RecordsOptions& options);

struct QuotaOptions {
  CommonOptions common;
  // Project id; empty is that of `common`.
  std::string project;
  // New limits as the user gives them, `none` for no limit; empty leaves them.
  std::string open_jobs;
  std::string device_time;
  std::string tokens;
  bool resets_use = false;
  // For `list`.
  std::string filter;
};

ExitCode RunQuotaList(const QuotaOptions& options);
ExitCode RunQuotaGet(const QuotaOptions& options);
ExitCode RunQuotaSet(const QuotaOptions& options);

// A token for the project of `common`, and for all of them where `role` is worker.
struct TokenOptions {
  CommonOptions common;
  std::string name;
  std::string role;
};

ExitCode RunTokenCreate(const TokenOptions& options);

ExitCode RunDoctor(const CommonOptions& options, const std::string& python);
ExitCode RunVersion(const CommonOptions& options);

}  // namespace mtmc::client
