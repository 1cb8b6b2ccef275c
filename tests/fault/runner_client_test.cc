// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/temp_dir.h"
#include "tests/fault/fault.h"
#include "worker/builder/resident_memory.h"
#include "worker/runner/client.h"

namespace mtmc::worker {
namespace {

using Ending = Reply<pipe::v1::RunnerResponse>::Ending;

pipe::v1::RunnerRequest Program(const std::string& fault = "") {
  pipe::v1::RunnerRequest request;
  request.mutable_load()->set_program(fault.empty() ? "a program" : "// fault: " + fault);
  return request;
}

// A client over processes that do as they are told.
class Ward {
 public:
  Ward() {
    auto folder = base::TempDir::Create();
    REQUIRE(folder.ok());
    folder_ = std::make_unique<base::TempDir>(*std::move(folder));
    client = std::make_unique<RunnerClient>(
        RunnerClient::Options{.program = MTMC_BINARY_DIR "/../tests/mtmc-fault-child",
                              .scratch = folder_->path().string(),
                              .tools = {},
                              .canary_timeout = absl::Milliseconds(300)});
    pipe::v1::RunnerRequest open;
    open.mutable_open();
    REQUIRE(client->Call(open, absl::Seconds(20)).is_answered());
  }

  Ending Call(const pipe::v1::RunnerRequest& request, absl::Duration timeout = absl::Seconds(20)) {
    last = client->Call(request, timeout);
    return last.ending;
  }

  // Of processes that are asked next, each done once.
  void Plan(const std::vector<std::string>& faults) {
    std::ofstream file(folder_->path() / "faults");
    for (const std::string& fault : faults) file << fault << "\n";
  }

  void AwaitSpare() const {
    const absl::Time limit = absl::Now() + absl::Seconds(20);
    while (!client->has_spare() && absl::Now() < limit) continue;
    REQUIRE(client->has_spare());
  }

  Reply<pipe::v1::RunnerResponse> last;

 private:
  std::unique_ptr<base::TempDir> folder_;

 public:
  std::unique_ptr<RunnerClient> client;
};

char StateOf(pid_t process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/stat"));
  std::string text;
  std::getline(file, text);
  const size_t state = text.rfind(')') + 2;
  return state < text.size() ? text[state] : 'X';
}

}  // namespace

TEST_CASE("After any bad end the next program runs", "[fault]") {
  const std::string act =
      GENERATE("crash", "exit", "kill", "garbage", "memory", "flood_crash", "context_lost", "hang");
  Ward ward;
  const bool is_slow = act == "hang" || act == "memory";
  ward.AwaitSpare();

  ward.Call(Program("load " + act), is_slow ? absl::Milliseconds(200) : absl::Seconds(20));

  CHECK((ward.last.ending != Ending::kAnswered || ward.last.response.is_context_lost()));
  CHECK(ward.Call(Program()) == Ending::kAnswered);
  CHECK_FALSE(ward.last.response.has_failure());
  CHECK(ward.client->CheckHealth().empty());
}

TEST_CASE("Deaths in a row wait for the spare and are not its fault", "[fault]") {
  Ward ward;

  for (int i = 0; i < 5; ++i) {
    CHECK(ward.Call(Program("load crash")) == Ending::kDied);
  }

  CHECK(ward.Call(Program()) == Ending::kAnswered);
}

TEST_CASE("A canary that fails once is repeated in a fresh process", "[fault]") {
  const std::string act = GENERATE("crash", "hang", "context_lost", "kill");
  Ward ward;
  ward.Call(Program("load crash"));
  ward.Plan({"canary " + act});

  CHECK(ward.client->CheckHealth().empty());
  CHECK(ward.Call(Program()) == Ending::kAnswered);
}

TEST_CASE("A device whose canary fails twice is unavailable until it passes", "[fault]") {
  Ward ward;
  ward.Call(Program("load crash"));
  ward.Plan({"canary hang", "canary context_lost", "canary crash", "canary crash"});

  CHECK(ward.Call(Program()) == Ending::kUnavailable);
  CHECK_THAT(ward.last.detail, Catch::Contains("computed 1 where 2 is right"));
  CHECK_THAT(ward.client->CheckHealth(), Catch::StartsWith("the canary ends its process"));
  CHECK(ward.client->CheckHealth().empty());
  CHECK(ward.Call(Program()) == Ending::kAnswered);
}

TEST_CASE("No canary runs while processes end well", "[fault]") {
  Ward ward;
  ward.Plan({"canary crash"});

  CHECK(ward.Call(Program()) == Ending::kAnswered);
  CHECK(ward.client->CheckHealth().empty());
  CHECK(ward.Call(Program()) == Ending::kAnswered);
}

TEST_CASE("Two processes change roles, and none is started for it", "[fault]") {
  Ward ward;
  ward.AwaitSpare();
  const auto children = ChildrenOf(getpid());
  REQUIRE(children.size() == 2);

  std::set<int64_t> numbers;
  for (int i = 0; i < 3; ++i) {
    CHECK(ward.Call(Program()) == Ending::kAnswered);
    const int64_t number = ward.last.process;
    ward.client->Alternate();
    CHECK(ward.Call(Program()) == Ending::kAnswered);
    CHECK(ward.client->has_spare());
    CHECK(ward.last.process != number);
    numbers.insert({number, ward.last.process});
  }
  CHECK(numbers.size() == 2);

  CHECK(ChildrenOf(getpid()) == children);
  // Both have worked, and either takes over when the other dies.
  CHECK(ward.Call(Program("load crash")) == Ending::kDied);
  CHECK(ward.Call(Program()) == Ending::kAnswered);
}

TEST_CASE("Without a spare a new process takes over", "[fault]") {
  Ward ward;
  ward.AwaitSpare();
  REQUIRE(ward.Call(Program("load crash")) == Ending::kDied);
  // Takes the spare; another is not started before the program was executed.
  REQUIRE(ward.Call(Program()) == Ending::kAnswered);
  REQUIRE_FALSE(ward.client->has_spare());
  const auto before = ChildrenOf(getpid());

  ward.client->Alternate();

  CHECK(ward.Call(Program()) == Ending::kAnswered);
  CHECK(ChildrenOf(getpid()) != before);
}

TEST_CASE("A process that ends while it is unloaded is replaced", "[fault]") {
  Ward ward;
  ward.AwaitSpare();
  REQUIRE(ward.Call(Program()) == Ending::kAnswered);
  ward.Plan({"unload crash"});

  ward.client->Alternate();

  CHECK(ward.Call(Program()) == Ending::kAnswered);
  CHECK(ward.client->CheckHealth().empty());
}

TEST_CASE("A spare that cannot open the device is replaced", "[fault]") {
  Ward ward;
  ward.AwaitSpare();
  ward.Plan({"open exit"});
  ward.Call(Program("load crash"));
  // Takes the spare, and starts the one that exits.
  CHECK(ward.Call(Program("load crash")) == Ending::kDied);

  CHECK(ward.Call(Program()) == Ending::kAnswered);
}

TEST_CASE("A spare does not open while executions are timed", "[fault]") {
  Ward ward;
  ward.AwaitSpare();
  ward.Plan({"open spin"});
  ward.Call(Program("load crash"));
  REQUIRE(ward.Call(Program()) == Ending::kAnswered);
  pipe::v1::RunnerRequest execute;
  execute.mutable_execute();
  REQUIRE(ward.Call(execute) == Ending::kAnswered);
  const auto count = [](char state) {
    int found = 0;
    for (const pid_t child : ChildrenOf(getpid())) found += StateOf(child) == state ? 1 : 0;
    return found;
  };
  const auto await = [&](char state, int wanted) {
    const absl::Time limit = absl::Now() + absl::Seconds(20);
    while (count(state) != wanted && absl::Now() < limit) continue;
    return count(state) == wanted;
  };
  pipe::v1::RunnerRequest time;
  time.mutable_time()->set_samples(1);

  CHECK(ward.Call(time) == Ending::kAnswered);
  CHECK(await('T', 1));
  CHECK(ward.Call(Program()) == Ending::kAnswered);
  CHECK(await('T', 0));
}

}  // namespace mtmc::worker
