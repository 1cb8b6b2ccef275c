// SPDX-License-Identifier: Apache-2.0
#include "common/daemon/flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/string_view.h"
#include "common/config/version.h"
#include "common/daemon/exit_code.h"

namespace mtmc::daemon {

void Declare(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version",
                       absl::StrCat(app.get_name(), " ", base::ToAbsl(config::Version())));
  if (!flags.listen.empty()) {
    app.add_option("--listen", flags.listen, "gRPC address HOST:PORT; port 0 takes a free one")
        ->capture_default_str();
  }
  app.add_option("--http", flags.http,
                 "address of /metrics, /healthz and /readyz; empty switches them off")
      ->capture_default_str();
  app.add_option("--ready-file", flags.ready_file, "JSON file written once the daemon serves");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->envname("MTMC_LOG")
      ->capture_default_str();
}

std::optional<int> ParseAndInitLogging(CLI::App& app, int argc, char** argv, const Flags& flags) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  const auto level = base::ParseLogLevel(flags.log_level);
  base::InitLogging({.program = app.get_name(), .level = level.value_or(base::LogLevel::kInfo)});
  if (!level.ok()) return FailUsage("unusable --log-level", level.status());
  return std::nullopt;
}

}  // namespace mtmc::daemon
