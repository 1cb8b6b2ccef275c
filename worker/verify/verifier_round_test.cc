// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "worker/verify/verifier.h"
#include "worker/verify/verifier_fixture.h"

// How a verification keeps both processes at work, and what it says all the same.
namespace mtmc::worker {
namespace {

// A runner that keeps inputs and whose outputs stay.
RunnerReply KeepingAndStaying(const pipe::v1::RunnerRequest& request) {
  RunnerReply reply = Keeping([](const auto&) { return 77; })(request);
  reply.response.mutable_outputs()->set_stay(true);
  return reply;
}

constexpr Verifier::Options kWithFresh{
    .hidden_seeds = 1, .has_distributions = false, .prepares_fresh = true, .outputs_stay = true};

int CountFresh(const FakeReference& reference) {
  const auto prepares = Prepares(reference);
  return static_cast<int>(std::count_if(prepares.begin(), prepares.end(), [](const auto* request) {
    return request->prepare().salt() != 0;
  }));
}

TEST_CASE("Verifier prepares fresh inputs while the program is verified", "[verify]") {
  FakeRunner runner(KeepingAndStaying);
  FakeReference reference(Comparing(kAlways));
  Verifier verifier(runner, reference);

  REQUIRE(verifier.Verify(kWithFresh).verdict == v1::Evaluation::VERDICT_CORRECT);
  CHECK(CountFresh(reference) == 1);
  CHECK(runner.requests.back().execute().keep_only());
  // All that follows is prepared beside something that is in use.
  const auto prepares = Prepares(reference);
  REQUIRE(prepares.size() == 3);
  CHECK_FALSE(prepares[0]->prepare().keeps_last());
  CHECK(prepares[2]->prepare().keeps_last());
  const auto fresh = verifier.PrepareFresh(absl::Seconds(1));

  REQUIRE(fresh);
  CHECK(CountFresh(reference) == 1);
  // Each serves once.
  REQUIRE(verifier.PrepareFresh(absl::Seconds(1)));
  CHECK(CountFresh(reference) == 2);
}

TEST_CASE("What may win meets the numbers of its text on workloads of its own", "[verify]") {
  FakeRunner runner(KeepingAndStaying);
  FakeReference reference(Comparing(kAlways));
  Verifier verifier(runner, reference);
  const auto own = [&] {
    std::vector<pipe::v1::ReferenceRequest::Prepare> found;
    for (const auto* request : Prepares(reference)) {
      if (request->prepare().numbers_size() > 0) found.push_back(request->prepare());
    }
    return found;
  };

  REQUIRE_FALSE(verifier.VerifyWinner({}).failure);
  CHECK(own().empty());
  CHECK(CountFresh(reference) == 0);
  const size_t usual = Prepares(reference).size();
  REQUIRE_FALSE(verifier.VerifyWinner({.numbers = {1e-4, 40}}).failure);

  REQUIRE(own().size() == 8);
  CHECK(Prepares(reference).size() == 2 * usual + 8);
  for (const auto& each : own()) {
    CHECK(each.distribution() == v1::DISTRIBUTION_MIXED);
    CHECK(std::vector<double>(each.numbers().begin(), each.numbers().end()) ==
          std::vector<double>{1e-4, 40});
    // One program has one salt.
    CHECK((each.salt() != 0 && each.salt() == own().front().salt()));
  }
  REQUIRE_FALSE(verifier.VerifyWinner({.numbers = {1e-4, 40}}).failure);
  CHECK(own().back().salt() != own().front().salt());
}

TEST_CASE("Verifier forgets fresh inputs that nobody takes", "[verify]") {
  FakeRunner runner(KeepingAndStaying);
  bool is_hidden_correct = true;
  FakeReference reference(Comparing([&](int seed) { return seed == 0 || is_hidden_correct; }));
  Verifier verifier(runner, reference);

  SECTION("of an evaluation that ends before") {
    verifier.Verify(kWithFresh);
    verifier.DropFresh();
  }
  SECTION("of a program that is wrong") {
    is_hidden_correct = false;
    REQUIRE(verifier.Verify(kWithFresh).failure);
    verifier.DropFresh();
  }
  SECTION("that the runner refuses") {
    FakeRunner refusing([](const pipe::v1::RunnerRequest& request) {
      RunnerReply reply = Outputs(request);
      reply.response.mutable_outputs()->set_stay(true);
      return reply;
    });
    REQUIRE_FALSE(Verifier(refusing, reference).Verify(kWithFresh).failure);
  }
  CHECK(CountFresh(reference) == 1);
  CHECK(reference.requests.back().release().prepared() == 1010);
}

// What both processes were asked for, in order.
class Diary {
 public:
  void Write(const std::string& line) {
    absl::MutexLock lock(&mu_);
    lines_.push_back(line);
  }

  // Position of the first such line; -1 without one.
  int Find(const std::string& line) {
    absl::MutexLock lock(&mu_);
    const auto found = std::find(lines_.begin(), lines_.end(), line);
    return found == lines_.end() ? -1 : static_cast<int>(found - lines_.begin());
  }

  // Whether such a line comes in time.
  bool Await(const std::string& line) {
    auto has_line = [&] { return std::find(lines_.begin(), lines_.end(), line) != lines_.end(); };
    absl::MutexLock lock(&mu_);
    return mu_.AwaitWithTimeout(absl::Condition(&has_line), absl::Seconds(10));
  }

 private:
  absl::Mutex mu_;
  std::vector<std::string> lines_;
};

// A runner whose outputs stay; the diary says when it has executed for the nth time.
FakeRunner::Answer Staying(Diary& diary) {
  return [&diary, count = 0](const pipe::v1::RunnerRequest& request) mutable {
    diary.Write(absl::StrCat("execute ", ++count));
    RunnerReply reply = Outputs(request);
    reply.response.mutable_outputs()->set_stay(true);
    return reply;
  };
}

TEST_CASE("Verifier executes the next workload while outputs that stay are compared", "[verify]") {
  Diary diary;
  FakeRunner runner(Staying(diary));
  bool is_late = false;
  FakeReference reference([&](const pipe::v1::ReferenceRequest& request) {
    // The second of three workloads is executed again before this answer about it.
    if (request.compare().prepared() == 12) is_late = !diary.Await("execute 3");
    return Comparing(kAlways)(request);
  });

  const Verification result =
      Verifier(runner, reference).Verify({.hidden_seeds = 2, .has_distributions = false});

  CHECK(result.verdict == v1::Evaluation::VERDICT_CORRECT);
  CHECK_FALSE(is_late);
  const auto prepares = Prepares(reference);
  REQUIRE(prepares.size() == 3);
  CHECK_FALSE(prepares.front()->prepare().keeps_last());
  CHECK(prepares.back()->prepare().keeps_last());
}

TEST_CASE("Verifier compares outputs before they are gone", "[verify]") {
  const bool stay = GENERATE(false, true);
  Diary diary;
  FakeRunner runner([&, count = 0](const pipe::v1::RunnerRequest& request) mutable {
    diary.Write(absl::StrCat("execute ", ++count));
    RunnerReply reply = Outputs(request);
    reply.response.mutable_outputs()->set_stay(stay);
    return reply;
  });
  FakeReference reference([&](const pipe::v1::ReferenceRequest& request) {
    if (request.has_compare()) diary.Write(absl::StrCat("compare ", request.compare().prepared()));
    return Comparing(kAlways)(request);
  });

  Verifier(runner, reference).Verify({.hidden_seeds = 5, .has_distributions = false});

  // Seed 5 is the second execution; each stays for none or for one more.
  for (int seed = 5; seed > 3; --seed) {
    const int execution = 7 - seed + (stay ? 2 : 1);
    CHECK(diary.Find(absl::StrCat("compare ", 10 + seed)) <
          diary.Find(absl::StrCat("execute ", execution)));
  }
}

TEST_CASE("Verifier tells of the first workload that fails", "[verify]") {
  Diary diary;
  FakeRunner runner([&, answer = Staying(diary)](const pipe::v1::RunnerRequest& request) {
    RunnerReply reply = answer(request);
    if (diary.Find("execute 2") >= 0) {
      reply = {.ending = RunnerReply::Ending::kDied, .detail = "signal 11"};
    }
    return reply;
  });
  bool is_first_correct = true;
  bool does_reference_die = false;
  FakeReference reference([&](const pipe::v1::ReferenceRequest& request) {
    if (request.has_compare()) {
      diary.Await("execute 2");
      if (does_reference_die) return ReferenceReply{.ending = ReferenceReply::Ending::kDied};
    }
    return Comparing([&](int) { return is_first_correct; })(request);
  });
  Verifier verifier(runner, reference);
  // Then the second workload is prepared before the first is compared.
  const Verifier::Options options{
      .hidden_seeds = 2, .has_distributions = false, .outputs_stay = true};

  SECTION("a wrong result before a crash") {
    is_first_correct = false;
    CHECK(verifier.Verify(options).failure->kind() == v1::Failure::KIND_WRONG_RESULT);
  }
  SECTION("a crash after a right one") {
    const Verification result = verifier.Verify(options);
    CHECK(result.failure->kind() == v1::Failure::KIND_CRASH);
    CHECK(result.failure->message() ==
          "the runner process died while it ran the program (workload seed 2)");
    CHECK(result.checks.workloads_size() == 1);
  }
  SECTION("a crash that takes the reference process along") {
    does_reference_die = true;
    CHECK(verifier.Verify(options).failure->kind() == v1::Failure::KIND_CRASH);
  }
  CHECK_FALSE(verifier.trouble());
}

}  // namespace
}  // namespace mtmc::worker
