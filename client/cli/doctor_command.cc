// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/coordinator_check.h"
#include "client/cli/named_endpoint.h"
#include "client/cli/output.h"
#include "common/base/run_process.h"
#include "common/base/status_macros.h"
#include "common/config/paths.h"

namespace mtmc::client {
namespace {

// Importing nothing, the worker looks at the host in under a second; OpenCL's
// first start may compile its built-ins.
constexpr absl::Duration kExamineTimeout = absl::Minutes(1);

std::string Mark(const std::string& state) {
  if (state == "present") return Green("ok");
  return state == "degraded" ? "less" : Red("missing");
}

// What this host can do, in one sentence.
std::string Verdict(const nlohmann::json& checks) {
  bool has_python = false;
  bool has_opencl = false;
  bool has_cuda = false;
  for (const auto& check : checks) {
    const bool is_present = check.value("state", "") != "missing";
    const std::string name = check.value("name", "");
    if (name == "python") has_python = is_present;
    if (name == "opencl") has_opencl = is_present;
    if (name == "cuda.driver") has_cuda = is_present;
    if (name == "gpu.visible") has_cuda = has_cuda && is_present;
  }
  if (!has_python) return "this host cannot run a worker: PyTorch is missing";
  if (has_cuda) return "this host can optimize for its NVIDIA GPU";
  if (has_opencl) return "this host can optimize for its CPU through OpenCL";
  return "this host cannot run a worker: there is no device";
}

// What the worker of this host finds.
absl::StatusOr<nlohmann::json> ExamineHost(const std::string& python) {
  std::vector<std::string> command = {(config::ProgramDir() / "mtmc-worker").string(), "--doctor"};
  if (!python.empty()) command.insert(command.end(), {"--python", python});
  MTMC_ASSIGN_OR_RETURN(const base::CompletedProcess result,
                        base::RunProcess({.argv = command}, {.timeout = kExamineTimeout}));
  if (!result.exit.is_success()) {
    return absl::InternalError(
        absl::StrCat("mtmc-worker --doctor ", result.exit.ToString(), ": ", result.error));
  }
  auto report = nlohmann::json::parse(result.output, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object() || !report["checks"].is_array()) {
    return absl::InternalError("mtmc-worker --doctor printed no JSON");
  }
  return report;
}

absl::Status CallCoordinator(const CommonOptions& options) {
  MTMC_ASSIGN_OR_RETURN(const Session session, Connect(options));
  return session.api->ListWorkers().status();
}

// Adds what is found on the way to the coordinator that the options name, if they name
// one; false if it is not reached.
bool AddCoordinator(const CommonOptions& options, nlohmann::json& checks) {
  const std::string endpoint = NamedEndpoint(options.endpoint);
  if (endpoint.empty()) return true;
  const CoordinatorCheck check = JudgeAnswer(endpoint, CallCoordinator(options));
  checks.push_back({{"name", "coordinator"},
                    {"state", check.is_present ? "present" : "missing"},
                    {"detail", check.detail},
                    {"remedy", check.remedy}});
  return check.is_present;
}

void Print(const nlohmann::json& checks) {
  Table table({"check", "state", "found"});
  for (const auto& check : checks) {
    table.AddRow(
        {check.value("name", ""), Mark(check.value("state", "")), check.value("detail", "")});
  }
  table.Print(std::cout);
  std::cout << "\n";
  for (const auto& check : checks) {
    if (check.value("remedy", "").empty()) continue;
    std::cout << check.value("name", "") << ": " << check.value("remedy", "") << "\n";
  }
}

absl::StatusOr<ExitCode> Doctor(const CommonOptions& options, const std::string& python) {
  MTMC_ASSIGN_OR_RETURN(nlohmann::json report, ExamineHost(python));
  const bool is_reached = AddCoordinator(options, report["checks"]);
  if (options.is_json) {
    std::cout << report.dump(2) << "\n";
    return kExitOk;
  }
  Print(report["checks"]);
  const std::string verdict = Verdict(report["checks"]);
  std::cout << "\n" << Bold(verdict) << "\n";
  if (!is_reached) std::cout << Bold("the coordinator is not reached from here") << "\n";
  return is_reached && verdict.find("cannot") == std::string::npos ? kExitOk : kExitUnavailable;
}

}  // namespace

ExitCode RunDoctor(const CommonOptions& options, const std::string& python) {
  return Finish(Doctor(options, python));
}

}  // namespace mtmc::client
