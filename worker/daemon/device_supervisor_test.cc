// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/device_supervisor.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/shutdown_signal.h"
#include "common/base/temp_dir.h"
#include "common/testing/status_matchers.h"

namespace mtmc::worker {
namespace {

using testing::IsOk;

const DeviceChoice kFirst{.backend = v1::DIALECT_CUDA, .index = 0};
const DeviceChoice kSecond{.backend = v1::DIALECT_CUDA, .index = 1};

// What follows `flag`.
std::string After(const std::vector<std::string>& command, const std::string& flag) {
  const auto found = std::find(command.begin(), command.end(), flag);
  return found == command.end() || found + 1 == command.end() ? "" : *(found + 1);
}

// A program that behaves like a worker as far as its parent can see.
struct FakeWorker {
  base::TempDir folder = *base::TempDir::Create();
  std::string program = (folder.path() / "worker").string();
  WorkerFlags flags;

  explicit FakeWorker(const std::string& life) {
    flags.daemon.ready_file = (folder.path() / "ready.json").string();
    flags.scratch = folder.path().string();
    REQUIRE_THAT(base::WriteFileAtomically(
                     program,
                     "#!/bin/sh\n"
                     "while [ $# -gt 0 ]; do\n"
                     "  case $1 in --ready-file) ready=$2;; --device) device=$2;; esac\n"
                     "  shift\n"
                     "done\n" +
                         life),
                 IsOk());
    ::chmod(program.c_str(), 0755);
  }

  bool AwaitFile(const std::string& name) const {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (absl::Now() < deadline) {
      if (std::filesystem::exists(folder.path() / name)) return true;
      std::this_thread::yield();
    }
    return false;
  }
};

// The ready file is there at once, as that of a worker is.
constexpr char kServe[] =
    "echo '{\"grpc\":\"\",\"http\":\"127.0.0.1:1\",\"pid\":1}' > $ready.part\n"
    "mv $ready.part $ready\n"
    "exec tail -f /dev/null\n";

}  // namespace

TEST_CASE("Each device's worker has a name, a folder, a port and a ready file", "[worker]") {
  WorkerFlags flags;
  flags.name = "node7";
  flags.scratch = "/scratch";
  flags.coordinator = "head:50151";
  flags.daemon.http = "127.0.0.1:9154";
  flags.daemon.ready_file = "/run/ready.json";
  flags.grace = "90s";

  const auto first = WorkerCommand("mtmc-worker", flags, kFirst, 0);
  const auto second = WorkerCommand("mtmc-worker", flags, kSecond, 1);

  CHECK(After(first, "--device") == "cuda:0");
  CHECK(After(second, "--device") == "cuda:1");
  CHECK(After(second, "--name") == "node7-cuda-1");
  CHECK(After(second, "--scratch") == "/scratch/cuda-1");
  CHECK(After(second, "--coordinator") == "head:50151");
  CHECK(After(first, "--http") == "127.0.0.1:9154");
  CHECK(After(second, "--http") == "127.0.0.1:9155");
  CHECK(After(second, "--ready-file") == "/run/ready.json.cuda-1");
  CHECK(After(second, "--grace") == "90s");
}

TEST_CASE("Every device's worker reaches the coordinator as its parent was told", "[worker]") {
  WorkerFlags flags;
  CHECK(After(WorkerCommand("w", flags, kFirst, 0), "--token-file").empty());
  flags.daemon.tls_ca = "ca.pem";
  flags.daemon.token_file = "token";
  flags.daemon.otlp_endpoint = "collector:4317";

  const auto command = WorkerCommand("w", flags, kSecond, 1);

  CHECK(After(command, "--tls-ca") == "ca.pem");
  CHECK(After(command, "--token-file") == "token");
  CHECK(After(command, "--otlp-endpoint") == "collector:4317");
}

TEST_CASE("A free port and no port stay what they are for every device", "[worker]") {
  WorkerFlags flags;
  flags.daemon.http = "127.0.0.1:0";
  CHECK(After(WorkerCommand("w", flags, kSecond, 1), "--http") == "127.0.0.1:0");
  flags.daemon.http = "";
  CHECK(After(WorkerCommand("w", flags, kSecond, 1), "--http") == "");
}

TEST_CASE("DeviceSupervisor is ready when every worker is", "[worker]") {
  const FakeWorker fake(kServe);
  base::ShutdownSignal shutdown;
  DeviceSupervisor supervisor(fake.flags, {.program = fake.program, .devices = {kFirst, kSecond}});
  int code = -1;
  std::jthread thread([&] { code = supervisor.Run(shutdown); });

  REQUIRE(fake.AwaitFile("ready.json"));
  const auto ready = base::ReadFile(fake.flags.daemon.ready_file);
  shutdown.Request();
  thread.join();

  CHECK(code == 0);
  CHECK_THAT(*ready, Catch::Contains(absl::StrCat("\"pid\":", ::getpid())));
  CHECK_THAT(*ready, Catch::Contains("127.0.0.1:1"));
}

TEST_CASE("DeviceSupervisor gives up when a worker cannot start", "[worker]") {
  const FakeWorker fake("if [ $device = cuda:1 ]; then exit 69; fi\nexec tail -f /dev/null\n");
  base::ShutdownSignal shutdown;
  DeviceSupervisor supervisor(fake.flags, {.program = fake.program, .devices = {kFirst, kSecond}});

  CHECK(supervisor.Run(shutdown) == 69);
}

TEST_CASE("DeviceSupervisor starts a worker that died again", "[worker]") {
  const FakeWorker fake(
      absl::StrCat("if [ -e $ready.lived ]; then touch $ready.again; fi\n"
                   "touch $ready.lived\n"
                   "echo $$ > $ready.pid\n",
                   kServe));
  base::ShutdownSignal shutdown;
  DeviceSupervisor supervisor(fake.flags, {.program = fake.program, .devices = {kFirst}});
  std::jthread thread([&] { supervisor.Run(shutdown); });
  REQUIRE(fake.AwaitFile("ready.json"));

  ::kill(static_cast<pid_t>(
             std::stoi(*base::ReadFile(absl::StrCat(fake.flags.daemon.ready_file, ".cuda-0.pid")))),
         SIGKILL);

  CHECK(fake.AwaitFile("ready.json.cuda-0.again"));
  shutdown.Request();
}

}  // namespace mtmc::worker
