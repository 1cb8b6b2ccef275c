// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/job_view.h"
#include "client/cli/output.h"
#include "common/base/enum_word.h"
#include "common/base/status_macros.h"

namespace mtmc::client {
namespace {

// What it works for, or why it does not.
std::string WorkOf(const v1::Worker& worker) {
  if (!worker.quarantine_reason().empty()) return worker.quarantine_reason();
  return worker.activity().empty() ? "-" : worker.activity();
}

absl::StatusOr<ExitCode> List(const WorkersOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  MTMC_ASSIGN_OR_RETURN(const std::vector<v1::Worker> workers,
                        session.api->ListWorkers(options.filter));
  if (options.common.is_json) {
    v1::ListWorkersResponse response;
    response.mutable_workers()->Assign(workers.begin(), workers.end());
    PrintJson(response, std::cout);
    return kExitOk;
  }
  Table table({"worker", "state", "device", "host", "version", "works for"});
  for (const v1::Worker& worker : workers) {
    table.AddRow({ShortName(worker.name()),
                  base::EnumWord(v1::Worker::State_Name(worker.state()), "STATE_"),
                  worker.device().product(), worker.host(), worker.version(), WorkOf(worker)});
  }
  table.Print(std::cout);
  return kExitOk;
}

absl::StatusOr<ExitCode> Drain(const WorkersOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  const std::string name = absl::StartsWith(options.name, "workers/")
                               ? options.name
                               : absl::StrCat("workers/", options.name);
  MTMC_ASSIGN_OR_RETURN(const v1::Worker worker,
                        session.api->DrainWorker(name, options.is_undrain));
  std::cerr << ShortName(worker.name())
            << (options.is_undrain ? " takes work again\n"
                                   : " finishes its work and takes no more\n");
  return kExitOk;
}

}  // namespace

ExitCode RunWorkersList(const WorkersOptions& options) { return Finish(List(options)); }

ExitCode RunWorkersDrain(const WorkersOptions& options) { return Finish(Drain(options)); }

}  // namespace mtmc::client
