// SPDX-License-Identifier: Apache-2.0
#include "common/base/subprocess.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "common/base/run_process.h"
#include "common/testing/status_matchers.h"

namespace mtmc::base {
namespace {

using testing::IsOk;
using testing::StatusIs;

SubprocessOptions Shell(const std::string& script) { return {.argv = {"/bin/sh", "-c", script}}; }

// Waits until `is_true`, for at most ten seconds.
template <typename Condition>
bool Eventually(Condition is_true) {
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (!is_true()) {
    if (absl::Now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// Whether the process runs; one that waits to be reaped by init does not.
bool IsAlive(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number;
  std::string name;
  char state = 'Z';
  stat >> number >> name >> state;
  return state != 'Z';
}

TEST_CASE("Subprocess reports the exit code of its program", "[base]") {
  auto process = Subprocess::Start(Shell("exit 3"));
  REQUIRE_THAT(process.status(), IsOk());

  const auto exit = process->Wait();

  REQUIRE_THAT(exit.status(), IsOk());
  CHECK(exit->exit_code == 3);
  CHECK(exit->ToString() == "exited with code 3");
}

TEST_CASE("Subprocess reports the signal that ended its program", "[base]") {
  auto process = Subprocess::Start(Shell("kill -SEGV $$"));
  REQUIRE_THAT(process.status(), IsOk());

  const auto exit = process->Wait();

  REQUIRE_THAT(exit.status(), IsOk());
  CHECK(exit->signal == SIGSEGV);
  CHECK(exit->ToString() == "killed by signal 11 (SIGSEGV)");
}

TEST_CASE("Subprocess says NOT_FOUND for a program that does not exist", "[base]") {
  const auto process = Subprocess::Start({.argv = {"/nonexistent/program"}});

  CHECK_THAT(process.status(), StatusIs(absl::StatusCode::kNotFound, "/nonexistent/program"));
}

TEST_CASE("Subprocess says NOT_FOUND for a working folder that does not exist", "[base]") {
  const auto process = Subprocess::Start({.argv = {"true"}, .working_folder = "/nonexistent"});

  CHECK_THAT(process.status(), StatusIs(absl::StatusCode::kNotFound, "/nonexistent"));
}

TEST_CASE("Waiting for a running process stops at the deadline", "[base]") {
  auto process = Subprocess::Start(Shell("sleep 100"));
  REQUIRE_THAT(process.status(), IsOk());

  const auto exit = process->Wait(absl::Now() + absl::Milliseconds(5));

  CHECK_THAT(exit.status(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  CHECK(process->Stop(absl::Seconds(10)).signal == SIGTERM);
}

TEST_CASE("The destructor of a subprocess ends the whole group", "[base]") {
  auto process = Subprocess::Start(
      {.argv = {"/bin/sh", "-c", "sleep 100 & echo $!; wait"}, .standard_output = Stdio::Pipe()});
  REQUIRE_THAT(process.status(), IsOk());
  char text[16] = {};
  REQUIRE(::read(process->standard_output().get(), text, sizeof text - 1) > 0);
  const pid_t grandchild = std::stoi(text);
  REQUIRE(IsAlive(grandchild));

  { const Subprocess ended = *std::move(process); }

  CHECK(Eventually([&] { return !IsAlive(grandchild); }));
}

TEST_CASE("What outlives the group leader is killed when it ends", "[base]") {
  const auto run = RunProcess(Shell("sleep 100 & echo $!"), {.timeout = absl::Seconds(20)});

  REQUIRE_THAT(run.status(), IsOk());
  const pid_t grandchild = std::stoi(run->output);
  CHECK(Eventually([&] { return !IsAlive(grandchild); }));
}

TEST_CASE("A subprocess outlives the thread that started it", "[base]") {
  absl::StatusOr<Subprocess> process = absl::UnknownError("not started");
  std::thread([&process] { process = Subprocess::Start(Shell("sleep 100")); }).join();
  REQUIRE_THAT(process.status(), IsOk());

  const auto exit = process->Wait(absl::Now() + absl::Milliseconds(50));

  CHECK_THAT(exit.status(), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_CASE("A subprocess sees only the variables of its allow-list", "[base]") {
  ::setenv("MTMC_TEST_ALLOWED", "yes", 1);
  ::setenv("MTMC_TEST_SECRET", "hidden", 1);

  const auto run = RunProcess({.argv = {"/usr/bin/env"},
                               .inherited_variables = {{"MTMC_TEST_ALLOWED"}},
                               .variables = {{"ADDED", "1"}}},
                              {});

  REQUIRE_THAT(run.status(), IsOk());
  CHECK(run->output == "ADDED=1\nMTMC_TEST_ALLOWED=yes\n");
}

TEST_CASE("A subprocess has no descriptors but those given to it", "[base]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  auto options = Shell("ls /proc/self/fd | tr '\\n' ' '");
  options.inherited_fds = {{ends[1], 7}};

  const auto run = RunProcess(options, {});

  // 3 is the descriptor through which ls reads the folder.
  REQUIRE_THAT(run.status(), IsOk());
  CHECK(run->output == "0 1 2 3 7 ");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("RunProcess feeds more input than a pipe holds", "[base]") {
  const std::string input(1 << 20, 'x');

  const auto run = RunProcess({.argv = {"cat"}}, {}, input);

  REQUIRE_THAT(run.status(), IsOk());
  CHECK(run->output == input);
}

TEST_CASE("RunProcess kills a process that runs too long", "[base]") {
  const auto run = RunProcess(Shell("sleep 100"), {.timeout = absl::Milliseconds(20)});

  CHECK_THAT(run.status(), StatusIs(absl::StatusCode::kDeadlineExceeded, "ran longer than 20ms"));
}

}  // namespace
}  // namespace mtmc::base
