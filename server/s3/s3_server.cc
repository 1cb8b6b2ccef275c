// SPDX-License-Identifier: Apache-2.0
#include "server/s3/s3_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/annotate.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/unique_fd.h"
#include "common/metrics/metrics.h"
#include "server/s3/client.h"

namespace mtmc::s3 {
namespace {

namespace fs = std::filesystem;

constexpr char kBucket[] = "artifacts";
constexpr char kAccessKey[] = "test-key";
constexpr char kSecretKey[] = "test-secret-of-s3";
constexpr absl::Duration kPatience = absl::Seconds(30);

// Where `go install` puts it, and where scripts/setup does.
std::string FindProgram() {
  std::vector<std::string> candidates;
  if (const auto program = GetEnvironment("MTMC_VERSITYGW")) candidates.push_back(*program);
  if (const auto home = GetEnvironment("HOME")) candidates.push_back(*home + "/go/bin/versitygw");
  candidates.emplace_back("/usr/local/bin/versitygw");
  candidates.emplace_back("/usr/bin/versitygw");
  for (const std::string& candidate : candidates) {
    if (fs::exists(candidate)) return candidate;
  }
  return "";
}

// One that is free now.
absl::StatusOr<int> FindPort() {
  const base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket.get(), any, size) != 0 || getsockname(socket.get(), any, &size) != 0) {
    return base::SystemError(errno, "cannot find a port");
  }
  return ntohs(address.sin_port);
}

}  // namespace

S3Server::S3Server(std::string program, base::TempDir folder, int port)
    : program_(std::move(program)), folder_(std::move(folder)), port_(port) {}

absl::StatusOr<S3Server> S3Server::Start() {
  const std::string program = FindProgram();
  if (program.empty()) {
    return absl::NotFoundError(
        "versitygw is not installed; run scripts/setup on a host with Go, or name it in "
        "MTMC_VERSITYGW");
  }
  MTMC_ASSIGN_OR_RETURN(base::TempDir folder, base::TempDir::Create("s3"));
  MTMC_ASSIGN_OR_RETURN(const int port, FindPort());
  S3Server server(program, std::move(folder), port);
  fs::create_directory(server.folder() / "root");
  MTMC_RETURN_IF_ERROR(server.StartAgain());
  return server;
}

Settings S3Server::settings(const std::string& prefix) const {
  return {.bucket = kBucket,
          .prefix = prefix,
          .endpoint = absl::StrCat("http://127.0.0.1:", port_),
          .region = "us-east-1"};
}

Environment S3Server::environment() const {
  return [](const char* name) -> std::optional<std::string> {
    if (std::string(name) == "AWS_ACCESS_KEY_ID") return kAccessKey;
    if (std::string(name) == "AWS_SECRET_ACCESS_KEY") return kSecretKey;
    return std::nullopt;
  };
}

fs::path S3Server::FileOf(const std::string& key) const {
  return folder() / "root" / kBucket / key;
}

int S3Server::CountParts() const {
  int count = 0;
  std::error_code error;
  const fs::path parts = folder() / "root" / kBucket / ".sgwtmp";
  for (fs::recursive_directory_iterator it(parts, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_regular_file()) ++count;
  }
  return count;
}

void S3Server::Kill() {
  server_->Kill();
  server_.reset();
}

absl::Status S3Server::StartAgain() {
  base::SubprocessOptions options;
  options.argv = {program_, "--port", absl::StrCat("127.0.0.1:", port_), "posix",
                  (folder() / "root").string()};
  options.variables = {{"ROOT_ACCESS_KEY", kAccessKey}, {"ROOT_SECRET_KEY", kSecretKey}};
  options.working_folder = folder();
  options.standard_output = base::Stdio::File(folder() / "log");
  options.standard_error = base::Stdio::File(folder() / "log");
  MTMC_ASSIGN_OR_RETURN(server_, base::Subprocess::Start(options));
  metrics::Registry registry("test");
  MTMC_ASSIGN_OR_RETURN(
      const auto client,
      Client::Create(settings(), {.max_attempts = 1, .environment = environment()}, registry));
  const absl::Time deadline = absl::Now() + kPatience;
  absl::Status status;
  do {
    // Refused once the bucket is there.
    status = client->Send({.method = "PUT", .key = ""}).status();
    if (status.ok() || !absl::IsUnavailable(status)) {
      return client->Send({.method = "GET", .query = {{"list-type", "2"}}}).status();
    }
    if (client->Send({.method = "GET", .query = {{"list-type", "2"}}}).ok()) {
      return absl::OkStatus();
    }
    // The delay of the next try; it ends by itself only if it cannot start.
    if (server_->Wait(absl::Now() + absl::Milliseconds(50)).ok()) break;
  } while (absl::Now() < deadline);
  return absl::UnavailableError(absl::StrCat("versitygw did not start: ", status.message(), ": ",
                                             base::ReadFile(folder() / "log").value_or("no log")));
}

void S3Server::Pause() {
  server_->Signal(SIGSTOP);
  // Its other threads go on, and answer, until each has seen the signal.
  siginfo_t stopped{};
  waitid(P_PID, static_cast<id_t>(server_->pid()), &stopped, WSTOPPED | WNOWAIT);
}

void S3Server::Resume() { server_->Signal(SIGCONT); }

}  // namespace mtmc::s3
