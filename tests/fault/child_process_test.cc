// SPDX-License-Identifier: Apache-2.0
#include "worker/builder/child_process.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/temp_dir.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "tests/fault/fault.h"
#include "worker/builder/reaper.h"
#include "worker/builder/resident_memory.h"

namespace mtmc::worker {
namespace {

using Ending = ChildProcess::Ending;
using fault::Fault;

constexpr int64_t kMemoryLimit = int64_t{128} << 20;

// Not a zombie.
bool IsRunning(pid_t process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/stat"));
  std::string text;
  std::getline(file, text);
  const size_t state = text.rfind(')') + 2;
  return state < text.size() && text[state] != 'Z' && text[state] != 'X';
}

// One child that commits `act` at the first request.
class Patient {
 public:
  explicit Patient(Fault::Act act) {
    auto folder = base::TempDir::Create();
    REQUIRE(folder.ok());
    folder_ = std::make_unique<base::TempDir>(*std::move(folder));
    auto started = ChildProcess::Start({.argv = {MTMC_BINARY_DIR "/../tests/mtmc-fault-child",
                                                 "--scratch", folder_->path().string()},
                                        .scratch = folder_->path().string(),
                                        .name = "patient",
                                        .max_resident_bytes = kMemoryLimit,
                                        .is_cancelled = [this] { return is_cancelled; }});
    REQUIRE(started.ok());
    process = *std::move(started);
    request_.mutable_load()->set_program(
        absl::StrCat("// fault: ", fault::ToText({.moment = "load", .act = act})));
  }

  ChildProcess::Answer Ask(absl::Duration timeout) {
    pipe::v1::RunnerResponse response;
    return process->Exchange(request_, response, absl::Now() + timeout);
  }

  // Of every file that the child could have written.
  uintmax_t FolderBytes() const {
    uintmax_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_->path())) {
      if (entry.is_regular_file()) bytes += entry.file_size();
    }
    return bytes;
  }

  const pipe::v1::RunnerRequest& request() const { return request_; }

  bool is_cancelled = false;

 private:
  std::unique_ptr<base::TempDir> folder_;
  pipe::v1::RunnerRequest request_;

 public:
  // Dies before its folder does.
  std::unique_ptr<ChildProcess> process;
};

}  // namespace

TEST_CASE("A deadline ends a child whatever it does", "[fault]") {
  const auto act = GENERATE(Fault::Act::kHang, Fault::Act::kSpin, Fault::Act::kStop);
  Patient patient(act);
  const std::vector<pid_t> children = ChildrenOf(getpid());
  REQUIRE(children.size() == 1);

  const auto answer = patient.Ask(absl::Milliseconds(200));

  CHECK(answer.ending == Ending::kTimedOut);
  CHECK(Reaper::Default().AwaitAll(absl::Now() + absl::Seconds(20)));
  CHECK_FALSE(IsRunning(children.front()));
}

TEST_CASE("A deadline ends a child with all that it has started", "[fault]") {
  Patient patient(Fault::Act::kFork);
  const pid_t child = ChildrenOf(getpid()).front();
  REQUIRE(patient.process->Send(patient.request(), absl::Now() + absl::Seconds(20)).ending ==
          Ending::kAnswered);
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (ChildrenOf(child).size() < 30 && absl::Now() < limit) continue;
  const std::vector<pid_t> group = ChildrenOf(child);
  REQUIRE(group.size() == 30);

  pipe::v1::RunnerResponse response;
  const auto answer = patient.process->Receive(response, absl::Now() + absl::Milliseconds(50));

  CHECK(answer.ending == Ending::kTimedOut);
  CHECK(Reaper::Default().AwaitAll(absl::Now() + absl::Seconds(20)));
  const auto is_gone = [&] { return std::none_of(group.begin(), group.end(), IsRunning); };
  while (!is_gone() && absl::Now() < limit) continue;
  CHECK(is_gone());
}

TEST_CASE("A child that takes too much memory is killed by name", "[fault]") {
  Patient patient(Fault::Act::kMemory);

  const auto answer = patient.Ask(absl::Seconds(20));

  CHECK(answer.ending == Ending::kOutOfMemory);
  CHECK_THAT(answer.detail, Catch::Contains("the limit is 128 MiB"));
}

TEST_CASE("A flood of text neither stops a child nor fills the disk", "[fault]") {
  Patient patient(Fault::Act::kFlood);

  CHECK(patient.Ask(absl::Seconds(20)).ending == Ending::kAnswered);

  CHECK(patient.FolderBytes() < 1'000'000);
}

TEST_CASE("The last words of a flood are kept", "[fault]") {
  Patient patient(Fault::Act::kFloodCrash);

  const auto answer = patient.Ask(absl::Seconds(20));

  CHECK(answer.ending == Ending::kDied);
  CHECK_THAT(answer.detail, Catch::StartsWith("killed by signal 11"));
  CHECK_THAT(answer.detail, Catch::Contains("the last words"));
  CHECK(answer.detail.size() < 64 << 10);
}

TEST_CASE("SIGKILL from outside is told from an own end", "[fault]") {
  CHECK(Patient(Fault::Act::kKill).Ask(absl::Seconds(20)).ending == Ending::kKilled);
  CHECK(Patient(Fault::Act::kCrash).Ask(absl::Seconds(20)).ending == Ending::kDied);
  const auto exited = Patient(Fault::Act::kExit).Ask(absl::Seconds(20));
  CHECK(exited.ending == Ending::kDied);
  CHECK_THAT(exited.detail, Catch::StartsWith("exited with code 3"));
}

TEST_CASE("A child that breaks the channel is at fault although we kill it", "[fault]") {
  const auto act = GENERATE(Fault::Act::kGarbage, Fault::Act::kMute);

  const auto answer = Patient(act).Ask(absl::Seconds(20));

  CHECK(answer.ending == Ending::kDied);
  CHECK_THAT(answer.detail, Catch::StartsWith("went on without its channel"));
}

TEST_CASE("A call that is off ends its child", "[fault]") {
  Patient patient(Fault::Act::kHang);
  patient.is_cancelled = true;

  CHECK(patient.Ask(absl::Seconds(20)).ending == Ending::kCancelled);
}

}  // namespace mtmc::worker
