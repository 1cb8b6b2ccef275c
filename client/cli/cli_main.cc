// SPDX-License-Identifier: Apache-2.0
//
// mtmc: the command line.
#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "client/cli/commands.h"
#include "client/cli/interrupt.h"
#include "common/base/log.h"
#include "common/config/version.h"

namespace mtmc::client {
namespace {

constexpr char kExamples[] = R"(Examples:
  mtmc optimize examples/problems/tanh_gelu.py     make it fast, write the winner
  mtmc up                                          run the local stack for several clients
  mtmc jobs create problem.py --wait               the same through a running coordinator
  mtmc candidates show JOB                         the best program, its times, its profile
  mtmc doctor                                      what this host has and what is missing

Exit codes: 0 ok, 1 error, 2 usage, 3 job failed, 4 nothing faster, 5 cancelled,
7 unavailable, 124 wait timed out, 130 interrupted.)";

// Everything that the command line can say.
struct Options {
  OptimizeOptions optimize;
  JobsOptions jobs;
  CandidatesOptions candidates;
  RecordsOptions records;
  QuotaOptions quota;
  WorkersOptions workers;
  TokenOptions token;
  UpOptions up;
  CommonOptions common;
  std::string python;
  std::string output = "table";
};

void AddJobOptions(CLI::App& app, JobOptions& job) {
  app.add_option("file", job.file, "Python file with Model, get_inputs and get_init_inputs")
      ->required();
  app.add_option("--strategy", job.strategy, "mtmc, greedy or random")
      ->check(CLI::IsMember({"mtmc", "greedy", "random"}))
      ->capture_default_str();
  app.add_option("--policy", job.policy, "macro policy, rules or lm")
      ->check(CLI::IsMember({"rules", "lm"}))
      ->capture_default_str();
  app.add_option("--coder", job.coder, "micro coder, builtin or llm")
      ->check(CLI::IsMember({"builtin", "llm"}))
      ->capture_default_str();
  app.add_option("--model", job.model, "language model of coder llm; default is the gateway's");
  app.add_option("--precision", job.precision, "strict, kernelbench, tf32 or half")
      ->capture_default_str();
  app.add_option("--dialect", job.dialect, "opencl or cuda; default by the worker");
  app.add_option(
         "--baseline", job.baselines,
         "eager, eager_tf32, eager_autocast, compile, compile_max_autotune; the first one counts")
      ->capture_default_str();
  app.add_option("--worker", job.worker, "only this worker");
  app.add_option("--min-isolation", job.min_isolation,
                 "least isolation of the worker: process, restricted or confined");
  app.add_option("--trials", job.max_trials, "most trials; 0 is the coordinator's default")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--steps", job.max_steps, "most steps of one rollout; 0 is the default, 8")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--minutes", job.max_minutes, "longest wall time in minutes; 0 is one hour")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seed", job.seed, "seed of parameters, inputs and search")
      ->capture_default_str();
  app.add_flag("--no-library", job.is_library_forbidden, "forbid vendor library calls");
  app.add_flag("--no-simplify", job.is_simplify_forbidden,
               "forbid algebra that is exact but for rounding");
  app.add_flag("--no-records", job.omits_records,
               "neither begin with what earlier jobs learned nor keep what this one learns");
  app.add_flag("--randomize-identity", job.randomize_identity_parameters,
               "replace biases of 0 and scales of 1 by random values");
  app.add_option("--fixed", job.fixed,
                 "an input of forward, or a parameter or buffer as state_dict names it, whose "
                 "values are part of the problem; may be repeated")
      ->allow_extra_args(false);
  app.add_flag("--nonfinite", job.judges_nonfinite,
               "judge what is made of NaN and infinities, too");
}

void AddStackOptions(CLI::App& app, StackOptions& stack) {
  app.add_option("--device", stack.device, "device of the local worker: auto, opencl:N or cuda:N")
      ->capture_default_str();
  app.add_flag("--all-devices", stack.has_all_devices, "one local worker for each device")
      ->excludes("--device");
  app.add_option("--python", stack.python, "interpreter that has PyTorch")->envname("MTMC_PYTHON");
  app.add_option("--data-dir", stack.data_dir,
                 "folder of the store; default in the user's data folder");
  app.add_option("--policy-model", stack.policy_model, "Hugging Face folder for policy lm");
}

// A subcommand that runs `body` when it is chosen.
CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& help,
                     ExitCode& exit_code, std::function<ExitCode()> body) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->fallthrough();
  command->callback([&exit_code, body = std::move(body)] { exit_code = body(); });
  return command;
}

void DeclareJobs(CLI::App& app, Options& options, ExitCode& exit_code) {
  CLI::App* jobs =
      app.add_subcommand("jobs", "create, list and follow jobs")->require_subcommand(1);
  jobs->fallthrough();
  CLI::App* create = AddCommand(*jobs, "create", "create a job at a running coordinator", exit_code,
                                [&] { return RunJobsCreate(options.jobs); });
  AddJobOptions(*create, options.jobs.job);
  create->add_flag("--wait", options.jobs.is_waiting, "follow the job to its end");
  create->add_flag("--dry-run", options.jobs.is_validate_only, "check everything, create nothing");
  create->add_option("--timeout", options.jobs.timeout_seconds,
                     "with --wait: longest wait in seconds");
  CLI::App* list = AddCommand(*jobs, "list", "list jobs, newest first unless told otherwise",
                              exit_code, [&] { return RunJobsList(options.jobs); });
  list->add_option("--limit", options.jobs.limit, "most jobs to list")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  list->add_option("--filter", options.jobs.filter,
                   "only jobs that this holds for, as 'state = SUCCEEDED AND best_speedup > 1.5'");
  list->add_option("--order-by", options.jobs.order_by,
                   "create_time, end_time or best_speedup; with ' desc' behind it, largest first");
  CLI::App* get =
      AddCommand(*jobs, "get", "show one job", exit_code, [&] { return RunJobsGet(options.jobs); });
  CLI::App* watch = AddCommand(*jobs, "watch", "follow a job; Ctrl-C detaches", exit_code,
                               [&] { return RunJobsWatch(options.jobs); });
  watch->add_option("--timeout", options.jobs.timeout_seconds,
                    "longest wait in seconds; 0 is for ever");
  CLI::App* cancel = AddCommand(*jobs, "cancel", "end a job; its candidates remain", exit_code,
                                [&] { return RunJobsCancel(options.jobs); });
  for (CLI::App* command : {get, watch, cancel}) {
    command->add_option("job", options.jobs.name, "job name")->required();
  }
  CLI::App* pause = AddCommand(*jobs, "pause", "let jobs rest; their time stands still", exit_code,
                               [&] { return RunJobsPause(options.jobs); });
  CLI::App* resume = AddCommand(*jobs, "resume", "let paused jobs go on", exit_code,
                                [&] { return RunJobsResume(options.jobs); });
  CLI::App* remove = AddCommand(*jobs, "delete", "forget jobs that have ended, for good", exit_code,
                                [&] { return RunJobsDelete(options.jobs); });
  for (CLI::App* command : {pause, resume, remove}) {
    command->add_option("job", options.jobs.names, "job names")->required();
  }
}

void DeclareCandidates(CLI::App& app, Options& options, ExitCode& exit_code) {
  CandidatesOptions& own = options.candidates;
  CLI::App* candidates =
      app.add_subcommand("candidates", "look at the programs of a job")->require_subcommand(1);
  candidates->fallthrough();
  CLI::App* list = AddCommand(*candidates, "list", "list the candidates of a job", exit_code,
                              [&] { return RunCandidatesList(own); });
  list->add_option("job", own.name, "job name")->required();
  list->add_option("--filter", own.filter,
                   "only candidates that this holds for, as 'evaluation.verdict = CORRECT'");
  CLI::App* show = AddCommand(*candidates, "show", "show a candidate, or the best one of a job",
                              exit_code, [&] { return RunCandidatesShow(own); });
  show->add_option("name", own.name, "JOB or JOB/CANDIDATE")->required();
  show->add_flag("--exchange", own.shows_exchange,
                 "what was said to the language model that wrote it, instead of the program");
  CLI::App* diff = AddCommand(*candidates, "diff", "what changed from its parent", exit_code,
                              [&] { return RunCandidatesDiff(own); });
  diff->add_option("name", own.name, "JOB or JOB/CANDIDATE")->required();
  diff->add_option("before", own.other, "compare with this candidate instead of the parent");
  CLI::App* exported = AddCommand(app, "export", "write a Python file with ModelNew", exit_code,
                                  [&] { return RunExport(own); });
  exported->add_option("name", own.name, "JOB (its best candidate) or JOB/CANDIDATE")->required();
  exported->add_option("-f,--file", own.output_file, "file to write; default standard output");
}

void DeclareRecords(CLI::App& app, Options& options, ExitCode& exit_code) {
  RecordsOptions& own = options.records;
  CLI::App* records =
      app.add_subcommand("records", "what searches learned, which later jobs begin with")
          ->require_subcommand(1);
  records->fallthrough();
  const auto add_filter = [&own](CLI::App* command) {
    command->add_option("--filter", own.filter,
                        "only records that this holds for, as 'device_class.product = \"*H200*\"'");
  };
  add_filter(AddCommand(*records, "list", "list the records of a project, oldest first", exit_code,
                        [&] { return RunRecordsList(own); }));
  CLI::App* exported = AddCommand(*records, "export", "write them as JSON, for another store",
                                  exit_code, [&] { return RunRecordsExport(own); });
  exported->add_option("-f,--file", own.file, "file to write; default standard output");
  add_filter(exported);
  AddCommand(*records, "import", "add those of another store; the faster of two stays", exit_code,
             [&] { return RunRecordsImport(own); })
      ->add_option("file", own.file, "what `export` wrote")
      ->required();
  AddCommand(*records, "delete", "forget records", exit_code, [&] { return RunRecordsDelete(own); })
      ->add_option("record", own.names, "record names")
      ->required();
}

void DeclareQuota(CLI::App& app, Options& options, ExitCode& exit_code) {
  QuotaOptions& own = options.quota;
  CLI::App* quota = app.add_subcommand("quota", "what the jobs of a project may use together")
                        ->require_subcommand(1);
  quota->fallthrough();
  AddCommand(*quota, "list", "list the quotas of all projects", exit_code, [&] {
    return RunQuotaList(own);
  })->add_option("--filter", own.filter, "only quotas that this holds for, as 'use.open_jobs > 0'");
  AddCommand(*quota, "get", "show the limits of a project and what it has used", exit_code, [&] {
    return RunQuotaGet(own);
  })->add_option("project", own.project, "project id; default --project");
  CLI::App* set = AddCommand(*quota, "set", "change limits of a project; others stay", exit_code,
                             [&] { return RunQuotaSet(own); });
  set->add_option("project", own.project, "project id")->required();
  set->add_option("--open-jobs", own.open_jobs, "most jobs that have not ended, or none");
  set->add_option("--device-time", own.device_time,
                  "most device time of evaluations, as 90m or 2h30m, or none");
  set->add_option("--tokens", own.tokens, "most tokens of language models, or none");
  set->add_flag("--reset-use", own.resets_use, "count device time and tokens from zero again");
}

void DeclareWorkers(CLI::App& app, Options& options, ExitCode& exit_code) {
  CLI::App* workers = app.add_subcommand("workers", "look at the fleet")->require_subcommand(1);
  workers->fallthrough();
  AddCommand(*workers, "list", "list workers", exit_code,
             [&] { return RunWorkersList(options.workers); })
      ->add_option("--filter", options.workers.filter,
                   "only workers that this holds for, as 'state = RUNNING'");
  CLI::App* drain = AddCommand(*workers, "drain", "let a worker finish and give it nothing new",
                               exit_code, [&] { return RunWorkersDrain(options.workers); });
  drain->add_option("worker", options.workers.name, "worker name")->required();
  drain->add_flag("--undo", options.workers.is_undrain, "let it take work again");
}

void DeclareToken(CLI::App& app, Options& options, ExitCode& exit_code) {
  CLI::App* token =
      app.add_subcommand("token", "make tokens for a service's callers")->require_subcommand(1);
  token->fallthrough();
  CLI::App* create = AddCommand(*token, "create", "print a new token, and its line for --tokens",
                                exit_code, [&] { return RunTokenCreate(options.token); });
  create->add_option("name", options.token.name, "whose it is, without spaces")->required();
  create->add_option("--role", options.token.role, "viewer, submitter, worker or administrator")
      ->required()
      ->check(CLI::IsMember({"viewer", "submitter", "worker", "administrator"}));
}

// How a coordinator on another host is reached.
void DeclareSecurity(CLI::App& app, rpc::ChannelSecurity& security) {
  app.add_option("--tls-ca", security.ca_file, "authorities of the coordinator, PEM; takes TLS")
      ->envname("MTMC_TLS_CA");
  app.add_option("--tls-cert", security.cert_file, "own certificate chain, PEM")
      ->envname("MTMC_TLS_CERT");
  app.add_option("--tls-key", security.key_file, "its private key, PEM")->envname("MTMC_TLS_KEY");
  app.add_option("--token-file", security.token_file, "file whose first line is the token")
      ->envname("MTMC_TOKEN_FILE");
  app.add_flag("--insecure", security.is_insecure, "send the token without TLS");
}

void Declare(CLI::App& app, Options& options, ExitCode& exit_code) {
  app.require_subcommand(1);
  app.footer(kExamples);
  app.add_option("--endpoint", options.common.endpoint,
                 "coordinator HOST:PORT; default MTMC_ENDPOINT or the local stack");
  app.add_option("--project", options.common.project, "project of the jobs")->capture_default_str();
  DeclareSecurity(app, options.common.security);
  app.add_option("-o,--output", options.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  app.add_flag("-q,--quiet", options.common.is_quiet, "print results only");

  CLI::App* optimize = AddCommand(app, "optimize", "make a problem fast; starts what is missing",
                                  exit_code, [&] { return RunOptimize(options.optimize); });
  AddJobOptions(*optimize, options.optimize.job);
  AddStackOptions(*optimize, options.optimize.stack);
  optimize->add_option("-f,--file-out", options.optimize.output_file,
                       "where the winner is written; default NAME_mtmc.py here");
  CLI::App* evaluate = AddCommand(app, "evaluate", "evaluate one program against a problem",
                                  exit_code, [&] { return RunEvaluate(options.optimize); });
  evaluate->add_option("program", options.optimize.job.program_file, "program text to evaluate")
      ->required();
  AddJobOptions(*evaluate, options.optimize.job);
  AddStackOptions(*evaluate, options.optimize.stack);
  CLI::App* up = AddCommand(app, "up", "run the local stack until Ctrl-C", exit_code,
                            [&] { return RunUp(options.up); });
  AddStackOptions(*up, options.up.stack);
  up->add_option("--listen", options.up.listen, "address of the coordinator")
      ->capture_default_str();
  DeclareJobs(app, options, exit_code);
  DeclareCandidates(app, options, exit_code);
  DeclareRecords(app, options, exit_code);
  DeclareQuota(app, options, exit_code);
  DeclareWorkers(app, options, exit_code);
  DeclareToken(app, options, exit_code);
  AddCommand(app, "doctor", "what this host has for a worker, and the way to its coordinator",
             exit_code, [&] { return RunDoctor(options.common, options.python); })
      ->add_option("--python", options.python, "interpreter that has PyTorch")
      ->envname("MTMC_PYTHON");
  AddCommand(app, "version", "print the version", exit_code,
             [&] { return RunVersion(options.common); });
}

int Main(int argc, char** argv) {
  Options options;
  ExitCode exit_code = kExitOk;
  CLI::App app("Makes GPU kernels fast and proves it.", "mtmc");
  Declare(app, options, exit_code);
  // Global options are complete before any subcommand's callback runs.
  app.parse_complete_callback([&] {
    options.common.is_json = options.output == "json";
    for (CommonOptions* common :
         {&options.optimize.common, &options.jobs.common, &options.candidates.common,
          &options.records.common, &options.quota.common, &options.workers.common,
          &options.token.common, &options.up.common}) {
      *common = options.common;
    }
  });
  base::InitLogging({.program = "mtmc", .level = base::LogLevel::kError});
  CatchInterrupts();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return exit_code;
}

}  // namespace
}  // namespace mtmc::client

int main(int argc, char** argv) { return mtmc::client::Main(argc, argv); }
