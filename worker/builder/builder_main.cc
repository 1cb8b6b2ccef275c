// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/config/version.h"
#include "worker/builder/builder_service.h"
#include "worker/builder/child_main.h"

// mtmc-builder: a child of the worker that compiles programs and never runs them.
int main(int argc, char** argv) {
  CLI::App app("compiles programs for the mtmc worker, which starts it");
  mtmc::worker::ToolPaths tools;
  app.add_option("--nvrtc", tools.nvrtc, "path of libnvrtc");
  app.add_option("--cupti", tools.cupti, "path of libcupti (not used by the builder)");
  app.add_option("--cuda-include-dir", tools.cuda_include_dir, "folder of the CUDA headers");
  app.add_option("--torch-lib-dir", tools.torch_lib_dir,
                 "folder of libtorch (not used by the builder)");
  int num_threads = 0;
  app.add_option("--threads", num_threads, "variants compiled at a time; 0: one per core");
  app.set_version_flag("--version", std::string(mtmc::config::Version()));
  CLI11_PARSE(app, argc, argv);
  mtmc::base::InitLogging({.program = "mtmc-builder"});

  mtmc::worker::BuilderService service(tools, num_threads);
  return mtmc::worker::ToExitCode(
      mtmc::worker::ServeChannel([&](const std::string& bytes) -> absl::StatusOr<std::string> {
        mtmc::pipe::v1::BuilderRequest request;
        if (!request.ParseFromString(bytes)) return absl::DataLossError("not a BuilderRequest");
        MTMC_ASSIGN_OR_RETURN(const auto response, service.Answer(request));
        return response.SerializeAsString();
      }));
}
