// SPDX-License-Identifier: Apache-2.0
#include "server/store/postgres_server.h"

#include <pwd.h>
#include <unistd.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace mtmc::store {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPatience = absl::Seconds(60);

// The newest installation that Debian or the PATH's pg_config would name.
std::string FindPrograms() {
  std::string found;
  std::error_code error;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", error)) {
    const std::string folder = version.path().string() + "/bin";
    if (fs::exists(folder + "/postgres") && folder > found) found = folder;
  }
  return found;
}

}  // namespace

PostgresServer::PostgresServer(std::string programs, base::TempDir folder)
    : programs_(std::move(programs)), folder_(std::move(folder)) {}

absl::StatusOr<PostgresServer> PostgresServer::Start() {
  const std::string programs = FindPrograms();
  if (programs.empty()) {
    return absl::NotFoundError("PostgreSQL's server is not installed; run scripts/setup");
  }
  // Paths of sockets are short.
  MTMC_ASSIGN_OR_RETURN(base::TempDir folder, base::TempDir::Create("pg"));
  PostgresServer server(programs, std::move(folder));
  const std::string path = server.folder_.path().string();
  if (geteuid() == 0) {
    const passwd* nobody = getpwnam("nobody");
    if (nobody == nullptr || chown(path.c_str(), nobody->pw_uid, nobody->pw_gid) != 0) {
      return absl::FailedPreconditionError("the folder cannot be given to user nobody");
    }
  }
  MTMC_RETURN_IF_ERROR(server.Run("initdb", {"-D", path + "/data", "-A", "trust", "-U", "mtmc",
                                             "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"}));
  MTMC_RETURN_IF_ERROR(server.StartAgain());
  return server;
}

absl::StatusOr<base::Subprocess> PostgresServer::Launch(
    const std::string& program, const std::vector<std::string>& arguments) const {
  base::SubprocessOptions options;
  if (geteuid() == 0) {
    options.argv = {"setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"};
  }
  options.argv.push_back(programs_ + "/" + program);
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.working_folder = folder_.path();
  options.standard_output = base::Stdio::File(folder_.path() / "log");
  options.standard_error = base::Stdio::File(folder_.path() / "log");
  return base::Subprocess::Start(options);
}

absl::Status PostgresServer::Run(const std::string& program,
                                 const std::vector<std::string>& arguments) const {
  MTMC_ASSIGN_OR_RETURN(base::Subprocess process, Launch(program, arguments));
  MTMC_ASSIGN_OR_RETURN(const base::ExitReason reason, process.Wait(absl::Now() + kPatience));
  if (reason.is_success()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(program, " ", reason.ToString(), ": ",
                   base::ReadFile(folder_.path() / "log").value_or("no log")));
}

absl::Status PostgresServer::StartAgain() {
  const std::string path = folder_.path().string();
  // Its own settings, but for the disk: what a killed process has written is in the
  // kernel's hands, which is enough here.
  MTMC_ASSIGN_OR_RETURN(server_, Launch("postgres", {"-D", path + "/data", "-k", path, "-c",
                                                     "listen_addresses=", "-c", "fsync=off", "-c",
                                                     "max_connections=200"}));
  const absl::Time deadline = absl::Now() + kPatience;
  absl::Status status;
  do {
    status = Run("pg_isready", {"-q", "-h", path});
    if (status.ok()) return status;
    // The delay of the next try; it ends by itself only if it cannot start.
    if (server_->Wait(absl::Now() + absl::Milliseconds(50)).ok()) break;
  } while (absl::Now() < deadline);
  return absl::UnavailableError(absl::StrCat(
      "postgres did not start: ", base::ReadFile(folder_.path() / "log").value_or("no log")));
}

absl::StatusOr<std::string> PostgresServer::CreateDatabase() {
  const std::string name = absl::StrCat("mtmc", ++num_databases_);
  const std::string path = folder_.path().string();
  MTMC_RETURN_IF_ERROR(Run("createdb", {"-h", path, "-U", "mtmc", name}));
  return absl::StrCat("host=", path, " user=mtmc dbname=", name);
}

void PostgresServer::Kill() {
  server_->Kill();
  server_.reset();
}

}  // namespace mtmc::store
