// SPDX-License-Identifier: Apache-2.0
//
// mtmc-evaluate: judges many programs on one device of this host, exactly as a
// worker does, without any other service:
//
//   mtmc-evaluate --manifest programs.jsonl --json verdicts.jsonl
//
// One line of verdicts for each line of the manifest (manifest.h), in its order,
// and a summary of where the time went on standard output.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/shutdown_signal.h"
#include "common/base/status_macros.h"
#include "common/base/temp_dir.h"
#include "common/config/python_environment.h"
#include "common/config/version.h"
#include "common/daemon/exit_code.h"
#include "google/protobuf/util/json_util.h"
#include "worker/daemon/device_choice.h"
#include "worker/daemon/evaluation_summary.h"
#include "worker/daemon/manifest.h"
#include "worker/daemon/prefetcher.h"
#include "worker/daemon/workbench.h"

namespace mtmc::worker {
namespace {

struct Flags {
  std::string manifest;
  std::string json;
  std::string device = "auto";
  std::string python;
  std::string scratch;
  std::string isolation = "confined";
  std::string log_level = "warning";
  int num_builders = 0;
  bool has_counters = false;
  bool omits_prefetch = false;
  bool confirms_winners = false;
};

void Declare(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version", "mtmc-evaluate " + std::string(config::Version()));
  app.add_option("--manifest", flags.manifest, "what to evaluate, one JSON object per line")
      ->required();
  app.add_option("--json", flags.json, "file for the verdicts, one JSON object per line")
      ->required();
  app.add_option("--device", flags.device, "auto, opencl:N or cuda:N")->capture_default_str();
  app.add_option("--python", flags.python, "interpreter that has PyTorch")->envname("MTMC_PYTHON");
  app.add_option("--scratch", flags.scratch,
                 "folder for caches that later runs may use; default a temporary one");
  app.add_option("--builders", flags.num_builders,
                 "builder processes; 0: half as many as there are cores, four at most");
  app.add_option("--isolation", flags.isolation,
                 "most that keeps children from the host: process, restricted or confined")
      ->capture_default_str();
  app.add_flag("--no-prefetch", flags.omits_prefetch,
               "build each program when its turn comes, not while the device works");
  app.add_flag("--winners", flags.confirms_winners,
               "measure again only what is faster than all programs of its problem before it, "
               "as a search does; without it, all that is faster than its baseline");
  app.add_flag("--counters", flags.has_counters, "read hardware counters in the profile stage");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->envname("MTMC_LOG")
      ->capture_default_str();
}

// The files of a manifest under their digests, within the scratch folder: the
// children see that folder and not the user's.
class BlobFolder {
 public:
  explicit BlobFolder(std::string folder) : folder_(std::move(folder)) {}

  absl::StatusOr<v1::Digest> Add(const std::string& path) {
    const auto known = digests_.find(path);
    if (known != digests_.end()) return known->second;
    MTMC_ASSIGN_OR_RETURN(const std::string bytes, base::ReadFile(path));
    v1::Digest digest;
    digest.set_sha256(base::Sha256(bytes).sha256_hex);
    digest.set_size_bytes(static_cast<int64_t>(bytes.size()));
    MTMC_RETURN_IF_ERROR(base::WriteFileAtomically(PathOf(digest), bytes));
    digests_[path] = digest;
    return digest;
  }

  std::string PathOf(const v1::Digest& digest) const {
    return absl::StrCat(folder_, "/", digest.sha256());
  }

 private:
  const std::string folder_;
  std::map<std::string, v1::Digest> digests_;
};

absl::StatusOr<v1::EvaluationRequest> RequestOf(const ManifestEntry& entry, bool has_counters,
                                                BlobFolder& blobs) {
  v1::EvaluationRequest request;
  *request.mutable_problem() = entry.problem;
  MTMC_ASSIGN_OR_RETURN(*request.mutable_problem()->mutable_source(),
                        blobs.Add(entry.problem_path));
  MTMC_ASSIGN_OR_RETURN(*request.mutable_program(), blobs.Add(entry.program_path));
  *request.mutable_options() = entry.options;
  if (!has_counters) request.mutable_options()->set_omit_counters(true);
  request.mutable_allowed_calls()->Assign(entry.allowed_calls.begin(), entry.allowed_calls.end());
  return request;
}

nlohmann::ordered_json ToJson(const CallLog::Totals& calls) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, total] : calls) {
    json[name] = {{"calls", total.calls}, {"ms", absl::ToDoubleMilliseconds(total.time)}};
  }
  return json;
}

std::string LineOf(const std::string& name, const v1::LeaseResult& result, absl::Duration wall,
                   const CallLog::Totals& calls) {
  google::protobuf::util::JsonPrintOptions print;
  print.preserve_proto_field_names = true;
  std::string text;
  (void)google::protobuf::util::MessageToJsonString(result, &text, print);
  nlohmann::ordered_json line = {
      {"name", name}, {"wall_seconds", absl::ToDoubleSeconds(wall)}, {"calls", ToJson(calls)}};
  line.update(nlohmann::ordered_json::parse(text));
  return line.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

// The best speedups over the first baseline so far, by problem.
class Leaders {
 public:
  double Find(const v1::EvaluationRequest& request) const {
    const auto best = speedups_.find(request.problem().source().sha256());
    return best == speedups_.end() ? 0 : best->second;
  }

  void Add(const v1::EvaluationRequest& request, const v1::Evaluation& evaluation) {
    if (evaluation.has_failure() || evaluation.comparisons().empty()) return;
    double& best = speedups_[request.problem().source().sha256()];
    best = std::max(best, evaluation.comparisons(0).speedup());
  }

 private:
  std::map<std::string, double> speedups_;
};

// What the prefetcher takes: the position in the manifest stands for a lease.
v1::Lease LeaseOf(size_t position, const v1::EvaluationRequest& request) {
  v1::Lease lease;
  lease.set_id(std::to_string(position));
  *lease.mutable_evaluation() = request;
  return lease;
}

int Fail(const absl::Status& status) {
  std::cerr << "mtmc-evaluate: " << std::string(status.message()) << "\n";
  return absl::IsInvalidArgument(status) ? daemon::kExitUsage : daemon::ExitCodeOf(status);
}

absl::StatusOr<int> EvaluateAll(const Flags& flags, const std::string& scratch,
                                const base::ShutdownSignal& shutdown) {
  MTMC_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(flags.manifest));
  MTMC_ASSIGN_OR_RETURN(const std::vector<ManifestEntry> entries, ParseManifest(text));
  BlobFolder blobs(absl::StrCat(scratch, "/artifacts"));
  std::vector<v1::EvaluationRequest> requests;
  for (const ManifestEntry& entry : entries) {
    MTMC_ASSIGN_OR_RETURN(requests.emplace_back(), RequestOf(entry, flags.has_counters, blobs));
  }
  MTMC_ASSIGN_OR_RETURN(auto python, config::PythonEnvironment::Probe(flags.python));
  MTMC_ASSIGN_OR_RETURN(const DeviceChoice device,
                        ParseDeviceChoice(flags.device, python.has_nvidia_device));
  const auto isolation = FindIsolationLevel(flags.isolation);
  if (!isolation) {
    return absl::InvalidArgumentError(absl::StrCat("--isolation is '", flags.isolation,
                                                   "', must be process, restricted or confined"));
  }
  Workbench bench({.python = std::move(python),
                   .device = device,
                   .scratch = scratch,
                   .fetch = [&](const v1::Digest& digest) { return blobs.PathOf(digest); },
                   .isolation = *isolation,
                   .num_builders = flags.num_builders,
                   .is_cancelled = [&] { return shutdown.token().stop_requested(); }});
  MTMC_RETURN_IF_ERROR(bench.Open());

  std::ofstream out(flags.json);
  EvaluationSummary summary;
  Leaders leaders;
  const absl::Time begin = absl::Now();
  const auto is_cancelled = [&] { return shutdown.token().stop_requested(); };
  Prefetcher::Options prefetch{.most = bench.most_prefetched()};
  if (!flags.omits_prefetch) {
    prefetch.prepare = [&](const v1::Lease& lease, const auto& is_called_off) {
      bench.Prepare(lease.evaluation(), is_called_off);
    };
  }
  Prefetcher prefetcher(std::move(prefetch));
  for (size_t i = 0; i < entries.size() && !is_cancelled(); ++i) {
    const absl::Time start = absl::Now();
    std::vector<v1::Lease> next;
    for (size_t j = i + 1;
         j < std::min(requests.size(), i + 1 + static_cast<size_t>(prefetcher.most())); ++j) {
      next.push_back(LeaseOf(j, requests[j]));
    }
    prefetcher.Adopt(std::to_string(i), next);
    prefetcher.Await(std::to_string(i), is_cancelled);
    const absl::Duration awaited = absl::Now() - start;
    if (flags.confirms_winners) requests[i].set_speedup_to_beat(leaders.Find(requests[i]));
    const v1::LeaseResult result = bench.evaluator().Evaluate(requests[i], [](v1::Stage) {});
    leaders.Add(requests[i], result.evaluation());
    const absl::Duration wall = absl::Now() - start;
    CallLog::Totals calls = bench.calls().Take();
    calls[kPrefetchAwait] = {.calls = 1, .time = awaited};
    summary.Add(result, wall, calls);
    out << LineOf(entries[i].name, result, wall, calls) << std::endl;
  }
  std::cout << summary.ToJson(absl::Now() - begin) << "\n";
  if (!out.good()) return absl::ResourceExhaustedError(absl::StrCat("cannot write ", flags.json));
  return summary.num_evaluated() == static_cast<int>(entries.size()) ? daemon::kExitOk
                                                                     : daemon::kExitOther;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Judges the programs of a manifest on one device.", "mtmc-evaluate");
  Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? daemon::kExitOk : daemon::kExitUsage;
  }
  const absl::StatusOr<base::LogLevel> level = base::ParseLogLevel(flags.log_level);
  if (!level.ok()) return Fail(level.status());
  base::InitLogging({.program = "mtmc-evaluate", .level = *level});
  // Before any thread and child.
  const base::ShutdownSignal shutdown;
  std::optional<base::TempDir> temporary;
  if (flags.scratch.empty()) {
    auto created = base::TempDir::Create("mtmc-evaluate");
    if (!created.ok()) return Fail(created.status());
    temporary = *std::move(created);
  }
  const auto code = EvaluateAll(
      flags,
      temporary ? temporary->path().string() : std::filesystem::absolute(flags.scratch).string(),
      shutdown);
  return code.ok() ? *code : Fail(code.status());
}

}  // namespace
}  // namespace mtmc::worker

// NOLINTNEXTLINE(bugprone-exception-escape): only where the JSON library is out of memory.
int main(int argc, char** argv) { return mtmc::worker::Main(argc, argv); }
