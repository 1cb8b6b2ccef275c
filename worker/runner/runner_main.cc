// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/config/version.h"
#include "worker/builder/child_main.h"
#include "worker/runner/runner_service.h"

// mtmc-runner: a child of the worker that executes device code.
int main(int argc, char** argv) {
  CLI::App app("runs programs for the mtmc worker, which starts it");
  mtmc::worker::RunnerService::Options options;
  app.add_option("--scratch", options.scratch, "folder for output files")->required();
  app.add_option("--nvrtc", options.tools.nvrtc, "path of libnvrtc");
  app.add_option("--cupti", options.tools.cupti, "path of libcupti");
  app.add_option("--cuda-include-dir", options.tools.cuda_include_dir,
                 "folder of the CUDA headers");
  app.add_option("--torch-lib-dir", options.tools.torch_lib_dir, "folder of libtorch");
  app.set_version_flag("--version", std::string(mtmc::config::Version()));
  CLI11_PARSE(app, argc, argv);
  mtmc::base::InitLogging({.program = "mtmc-runner"});

  // Left to the end of the process: drivers and libtorch have threads that do
  // not outlive an orderly destruction in every version.
  auto& service = *new mtmc::worker::RunnerService(options);
  bool is_context_lost = false;
  const absl::Status status =
      mtmc::worker::ServeChannel([&](const std::string& bytes) -> absl::StatusOr<std::string> {
        if (is_context_lost) return absl::AbortedError("the device context is lost");
        mtmc::pipe::v1::RunnerRequest request;
        if (!request.ParseFromString(bytes)) return absl::DataLossError("not a RunnerRequest");
        MTMC_ASSIGN_OR_RETURN(const auto response, service.Answer(request));
        is_context_lost = response.is_context_lost();
        return response.SerializeAsString();
      });
  std::quick_exit(mtmc::worker::ToExitCode(status));
}
