// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/run_process.h"
#include "common/base/subprocess.h"
#include "common/base/temp_dir.h"
#include "common/base/unique_fd.h"
#include "worker/sandbox/confine.h"
#include "worker/sandbox/isolation.h"

namespace mtmc::worker {
namespace {

constexpr uint64_t kScratchBytes = 8 << 20;
constexpr uint64_t kProcesses = 64;

std::string Program(const std::string& name) { return absl::StrCat(MTMC_BINARY_DIR, "/", name); }

const HostSupport& Host() {
  static const HostSupport& support = *new HostSupport(*ProbeHost(Program("mtmc-sandbox")));
  return support;
}

// What a level uses here; empty, with a line for ctest, where the host cannot
// reach it.
Isolation At(IsolationLevel level) {
  Isolation isolation = DecideIsolation(Program("mtmc-sandbox"), Host(), level);
  if (isolation.level() == level) return isolation;
  std::cout << "SKIPPED: this host does not reach the level " << NameOf(level) << ":";
  for (const auto& [name, reason] : isolation.missing) std::cout << " " << name << ": " << reason;
  std::cout << std::endl;
  isolation.mechanisms.clear();
  return isolation;
}

// A party's folders, with things that it must not reach beside them.
class Place {
 public:
  Place() : folder_(*base::TempDir::Create("mtmc-sandbox")) {
    for (const char* name : {"own", "other"}) {
      REQUIRE(base::MakeFolder(Path(name)).ok());
      std::filesystem::permissions(Path(name), std::filesystem::perms::all);
    }
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    REQUIRE(base::WriteFileAtomically(Path("other/tensor"), "numbers").ok());
    REQUIRE(base::WriteFileAtomically(Path("secret"), "password").ok());
  }

  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }

  Rights RightsOf(PartyKind party) const {
    Rights rights = MakeRights(party, {.readable = {MTMC_BINARY_DIR, Path("other")}});
    rights.scratch_bytes = kScratchBytes;
    rights.limits.processes = kProcesses;
    // Not there, so that only what goes with a GPU changes.
    if (has_gpu) rights.devices.emplace_back("/dev/nvidia-of-a-test");
    return rights;
  }

  base::SubprocessOptions StartOf(std::vector<std::string> argv) const {
    base::SubprocessOptions start;
    start.argv = std::move(argv);
    start.inherited_variables = std::vector<std::string>{"PATH"};
    start.working_folder = Path("own");
    return start;
  }

  std::vector<std::string> Attempts() const {
    return {Program("mtmc-sandbox-attempts"), Path("own"), Path("other"), Path("secret"),
            std::to_string(getpid())};
  }

  bool has_gpu = false;

 private:
  const base::TempDir folder_;
};

using Results = std::map<std::string, int>;

Results Parse(const base::CompletedProcess& run) {
  INFO(run.error);
  Results results;
  std::istringstream lines(run.output);
  std::string name;
  for (int error = 0; lines >> name >> error;) results[name] = error;
  // Otherwise it was ended in the middle.
  REQUIRE(results.count("end") == 1);
  return results;
}

Results RunConfined(const Place& place, PartyKind party, const Isolation& isolation,
                    std::vector<std::string> argv, bool as_nobody = false) {
  base::SubprocessOptions start = place.StartOf(std::move(argv));
  REQUIRE(Confine({.rights = place.RightsOf(party), .isolation = isolation}, start).ok());
  if (as_nobody) {
    start.argv.insert(start.argv.begin(),
                      {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
  }
  auto run = base::RunProcess(start, {.timeout = absl::Seconds(25)});
  REQUIRE(run.ok());
  return Parse(*run);
}

// Everything but what the party needs is denied at every level above PROCESS.
void CheckDenied(const Results& results, const std::set<std::string>& allowed) {
  for (const auto& [name, error] : results) {
    INFO(name << " gave error " << error);
    CHECK((error == 0) == (allowed.count(name) == 1));
  }
}

const std::set<std::string> kAlways = {"file.read-other", "file.write-own", "file.unlink-own",
                                       "process.execute", "process.thread", "end"};

std::set<std::string> With(std::set<std::string> names, const std::set<std::string>& more) {
  names.insert(more.begin(), more.end());
  return names;
}

// What only Landlock closes where there are no namespaces.
std::set<std::string> OpenWithout(const Isolation& isolation) {
  const auto has = [&](Mechanism mechanism) { return isolation.mechanisms.count(mechanism) == 1; };
  std::set<std::string> open;
  if (!has(Mechanism::kMountNamespace)) open.insert("limit.scratch");
  if (!has(Mechanism::kUserNamespace)) open.insert("limit.processes");
  return open;
}

}  // namespace

TEST_CASE("a confined party can do nothing but its work", "[sandbox]") {
  const Isolation isolation = At(IsolationLevel::kConfined);
  if (isolation.mechanisms.empty()) return;
  const Place place;
  const auto builder = RunConfined(place, PartyKind::kBuilder, isolation, place.Attempts());
  // Without Landlock a process may write to its own memory, which harms nobody.
  std::set<std::string> allowed = kAlways;
  if (isolation.mechanisms.count(Mechanism::kLandlock) == 0) allowed.insert("file.memory-of-self");
  CheckDenied(builder, allowed);
  CHECK(builder.at("limit.scratch") == ENOSPC);
  CHECK(builder.at("limit.processes") == EAGAIN);
  // Python and CUDA make local sockets, which lead nowhere.
  for (const PartyKind party : {PartyKind::kReference, PartyKind::kRunner}) {
    INFO(NameOf(party));
    CheckDenied(RunConfined(place, party, isolation, place.Attempts()),
                With(allowed, {"socket.local"}));
  }
}

TEST_CASE("an ordinary user's party is confined as root's is", "[sandbox]") {
  if (geteuid() != 0) {
    std::cout << "SKIPPED: only root can become another user" << std::endl;
    return;
  }
  const Isolation isolation = At(IsolationLevel::kConfined);
  if (isolation.mechanisms.empty()) return;
  const Place place;
  // A probe as root says nothing about others.
  auto probe = base::RunProcess({.argv = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                                          "--clear-groups", Program("mtmc-sandbox"), "--probe"}},
                                {.timeout = absl::Seconds(10)});
  if (!probe.ok() || probe->output.find("namespace") != std::string::npos) {
    std::cout << "SKIPPED: ordinary users may not make namespaces here" << std::endl;
    return;
  }
  std::set<std::string> allowed = kAlways;
  if (isolation.mechanisms.count(Mechanism::kLandlock) == 0) allowed.insert("file.memory-of-self");
  CheckDenied(RunConfined(place, PartyKind::kBuilder, isolation, place.Attempts(), true), allowed);
}

// CUDA names its threads in /proc/self/task, so a party with a GPU may write there.
TEST_CASE("a party with a GPU writes to nothing in /proc but its own", "[sandbox]") {
  const Isolation isolation = At(IsolationLevel::kConfined);
  if (isolation.mechanisms.empty()) return;
  Place place;
  place.has_gpu = true;
  const auto allowed = With(kAlways, {"socket.local", "file.memory-of-self"});
  CheckDenied(RunConfined(place, PartyKind::kRunner, isolation, place.Attempts()), allowed);
}

TEST_CASE("what a party wrote is its own at every level that it is started at", "[sandbox]") {
  const Place place;
  for (const IsolationLevel level :
       {IsolationLevel::kConfined, IsolationLevel::kRestricted, IsolationLevel::kProcess,
        IsolationLevel::kConfined, IsolationLevel::kRestricted}) {
    INFO(NameOf(level));
    const Isolation isolation = DecideIsolation(Program("mtmc-sandbox"), Host(), level);
    base::SubprocessOptions start = place.StartOf(
        {"/bin/sh", "-c", "umask 077; mkdir -p kept && echo line >> kept/file && cat kept/file"});
    REQUIRE(Confine({.rights = place.RightsOf(PartyKind::kRunner), .isolation = isolation}, start)
                .ok());
    const auto run = base::RunProcess(start, {.timeout = absl::Seconds(30)});
    REQUIRE(run.ok());
    INFO(run->error);
    CHECK(run->exit.is_success());
  }
}

// As a Python whose folder is a link is given: the folder, and what lies in it.
TEST_CASE("a folder behind a link is whole for a confined party", "[sandbox]") {
  const Isolation isolation = At(IsolationLevel::kConfined);
  if (isolation.mechanisms.empty()) return;
  const Place place;
  REQUIRE(base::MakeFolder(place.Path("environment/bin")).ok());
  REQUIRE(base::WriteFileAtomically(place.Path("environment/settings"), "whole ").ok());
  REQUIRE(base::WriteFileAtomically(place.Path("environment/bin/program"), "and in it").ok());
  std::filesystem::create_symlink("environment", place.Path("between"));
  std::filesystem::create_symlink("between", place.Path("linked"));
  Rights rights = place.RightsOf(PartyKind::kReference);
  rights.readable.push_back(place.Path("linked"));
  rights.readable.push_back(place.Path("linked/bin"));
  base::SubprocessOptions start =
      place.StartOf({"/bin/cat", place.Path("linked/settings"), place.Path("linked/bin/program")});
  REQUIRE(Confine({.rights = rights, .isolation = isolation}, start).ok());
  const auto run = base::RunProcess(start, {.timeout = absl::Seconds(25)});
  REQUIRE(run.ok());
  INFO(run->error);
  CHECK(run->output == "whole and in it");
}

TEST_CASE("a restricted party is denied the same, but for the bounds", "[sandbox]") {
  const Isolation isolation = At(IsolationLevel::kRestricted);
  if (isolation.mechanisms.count(Mechanism::kLandlock) == 0) return;
  const Place place;
  const std::set<std::string> allowed = With(kAlways, OpenWithout(isolation));
  CheckDenied(RunConfined(place, PartyKind::kBuilder, isolation, place.Attempts()), allowed);
  CheckDenied(RunConfined(place, PartyKind::kRunner, isolation, place.Attempts()),
              With(allowed, {"socket.local"}));
}

TEST_CASE("a sealed runner on a GPU starts no process and removes no file", "[sandbox]") {
  const Isolation isolation = At(IsolationLevel::kConfined);
  if (isolation.mechanisms.empty()) return;
  const Place place;
  auto argv = place.Attempts();
  argv.push_back("cuda");
  const auto results = RunConfined(place, PartyKind::kRunner, isolation, argv);
  CHECK(results.at("seal") == 0);
  CHECK(results.at("process.execute") == EPERM);
  CHECK(results.at("socket.local") == EPERM);
  CHECK(results.at("file.unlink-own") == EPERM);
  // Compilers open files late, and drivers make threads.
  CHECK(results.at("file.read-other") == 0);
  CHECK(results.at("process.thread") == 0);
}

TEST_CASE("a sealed runner on the host still links kernels", "[sandbox]") {
  const Isolation isolation = At(IsolationLevel::kConfined);
  if (isolation.mechanisms.empty()) return;
  const Place place;
  auto argv = place.Attempts();
  argv.push_back("host");
  const auto results = RunConfined(place, PartyKind::kRunner, isolation, argv);
  CHECK(results.at("process.execute") == 0);
  CHECK(results.at("file.unlink-own") == 0);
  CHECK(results.at("socket.local") == EPERM);
  CHECK(results.at("process.signal-daemon") != 0);
}

TEST_CASE("the launcher ends as its program does", "[sandbox]") {
  const Isolation isolation = At(IsolationLevel::kConfined);
  if (isolation.mechanisms.empty()) return;
  const Place place;
  const auto end_of = [&](const std::string& script) {
    base::SubprocessOptions start = place.StartOf({"/usr/bin/bash", "-c", script});
    REQUIRE(Confine({.rights = place.RightsOf(PartyKind::kBuilder), .isolation = isolation}, start)
                .ok());
    start.standard_error = base::Stdio::Null();
    auto process = base::Subprocess::Start(start);
    REQUIRE(process.ok());
    auto reason = process->Wait(absl::Now() + absl::Seconds(20));
    REQUIRE(reason.ok());
    return reason->ToString();
  };
  CHECK(end_of("exit 0") == "exited with code 0");
  CHECK(end_of("exit 7") == "exited with code 7");
  CHECK(end_of("kill -SEGV $$") == "killed by signal 11 (SIGSEGV)");
  CHECK(end_of("kill -ABRT $$") == "killed by signal 6 (SIGABRT)");
  CHECK(end_of("kill -KILL $$") == "killed by signal 9 (SIGKILL)");
}

TEST_CASE("no process outlives its launcher or a kill of its group", "[sandbox]") {
  const Isolation isolation = At(IsolationLevel::kConfined);
  if (isolation.mechanisms.empty()) return;
  const Place place;
  for (const bool kills_launcher : {true, false}) {
    base::SubprocessOptions start =
        place.StartOf({"/usr/bin/bash", "-c", "setsid sleep 1000 & echo; wait"});
    start.standard_output = base::Stdio::Pipe();
    REQUIRE(
        Confine({.rights = place.RightsOf(PartyKind::kReference), .isolation = isolation}, start)
            .ok());
    auto process = base::Subprocess::Start(start);
    REQUIRE(process.ok());
    char started = 0;
    REQUIRE(read(process->standard_output().get(), &started, 1) == 1);
    const pid_t program = FindProgram(process->pid());
    REQUIRE(program > 0);
    const base::UniqueFd end(static_cast<int>(syscall(SYS_pidfd_open, program, 0)));
    if (kills_launcher) {
      kill(process->pid(), SIGKILL);
    } else {
      process->Kill();
    }
    auto reason = process->Wait(absl::Now() + absl::Seconds(20));
    REQUIRE(reason.ok());
    CHECK(reason->signal == SIGKILL);
    pollfd entry{.fd = end.get(), .events = POLLIN, .revents = 0};
    CHECK(poll(&entry, 1, 20'000) == 1);
    // The pipe ends when its last holder does, the process of another session too.
    char more = 0;
    CHECK(read(process->standard_output().get(), &more, 1) == 0);
  }
}

TEST_CASE("a launcher that cannot do what it was told starts nothing", "[sandbox]") {
  const Place place;
  Isolation isolation = At(IsolationLevel::kConfined);
  if (isolation.mechanisms.empty()) return;
  base::SubprocessOptions start = place.StartOf({"/usr/bin/no-such-program"});
  REQUIRE(
      Confine({.rights = place.RightsOf(PartyKind::kBuilder), .isolation = isolation}, start).ok());
  auto run = base::RunProcess(start, {.timeout = absl::Seconds(20)});
  REQUIRE(run.ok());
  CHECK(run->exit.exit_code == kLauncherFailed);
  CHECK(run->error.find("start /usr/bin/no-such-program") != std::string::npos);
}

TEST_CASE("a lower level names what it leaves out, and why", "[sandbox]") {
  const Isolation best = DecideIsolation("/bin/launcher", HostSupport{}, IsolationLevel::kConfined);
  CHECK(best.level() == IsolationLevel::kConfined);
  CHECK(best.missing.empty());
  const Isolation lower = Degrade(best, IsolationLevel::kRestricted, "the device does not open");
  CHECK(lower.level() == IsolationLevel::kRestricted);
  CHECK(lower.missing.at("namespace.mount") == "the device does not open");
  const Isolation none = DecideIsolation("/bin/launcher", absl::NotFoundError("no launcher"),
                                         IsolationLevel::kConfined);
  CHECK(none.level() == IsolationLevel::kProcess);
  CHECK(none.missing.at("seccomp") == "no launcher");
}

TEST_CASE("a host without pid namespaces is not called confined", "[sandbox]") {
  HostSupport support;
  support.missing[Mechanism::kPidNamespace] = "forbidden";
  const Isolation isolation = DecideIsolation("/bin/launcher", support, IsolationLevel::kConfined);
  CHECK(isolation.level() == IsolationLevel::kRestricted);
  CHECK(isolation.mechanisms.count(Mechanism::kMountNamespace) == 1);
}

}  // namespace mtmc::worker
