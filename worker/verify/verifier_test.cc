// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/verifier.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "mtmc/v1/reference.pb.h"
#include "mtmc/v1/runner.pb.h"
#include "worker/verify/fake_party.h"

namespace mtmc::worker {
namespace {

using FakeRunner = FakeParty<v1::RunnerRequest, v1::RunnerResponse>;
using FakeReference = FakeParty<v1::ReferenceRequest, v1::ReferenceResponse>;
using RunnerReply = Reply<v1::RunnerResponse>;
using ReferenceReply = Reply<v1::ReferenceResponse>;

RunnerReply Outputs(const v1::RunnerRequest&) {
  RunnerReply reply{.ending = RunnerReply::Ending::kAnswered};
  reply.response.mutable_outputs()->add_outputs()->set_name("y");
  return reply;
}

// A runner that keeps inputs; `digest` says what of an execution.
FakeRunner::Answer Keeping(const std::function<uint64_t(const v1::RunnerRequest&)>& digest) {
  return [digest](const v1::RunnerRequest& request) {
    RunnerReply reply = Outputs(request);
    reply.response.mutable_outputs()->set_digest(digest(request));
    reply.response.mutable_outputs()->set_kept(request.execute().keep_as());
    return reply;
  };
}

// Answers every request; `is_correct` says what of the workload it is about.
// Handles are 10 plus the seed.
FakeReference::Answer Comparing(const std::function<bool(int workload)>& is_correct) {
  return [is_correct](const v1::ReferenceRequest& request) {
    ReferenceReply reply{.ending = ReferenceReply::Ending::kAnswered};
    if (request.has_prepare()) {
      reply.response.mutable_prepared()->add_inputs()->set_name("x");
      reply.response.mutable_prepared()->set_prepared(10 + request.prepare().workload());
      reply.response.mutable_prepared()->set_oracle("fp64");
    } else {
      const int workload = static_cast<int>(request.compare().prepared()) - 10;
      auto& compared = *reply.response.mutable_compared();
      compared.set_is_correct(is_correct(workload));
      compared.add_satisfied(v1::PRECISION_TF32);
      if (workload == 0) compared.add_satisfied(v1::PRECISION_STRICT);
      compared.set_kernelbench_allclose(true);
      compared.add_errors()->set_tolerance_needed(0.1 * (workload + 1));
      compared.set_message("output y is out of bound");
    }
    return reply;
  };
}

constexpr auto kAlways = [](int) { return true; };

std::vector<const v1::ReferenceRequest*> Prepares(const FakeReference& reference) {
  std::vector<const v1::ReferenceRequest*> found;
  for (const auto& request : reference.requests) {
    if (request.has_prepare()) found.push_back(&request);
  }
  return found;
}

TEST_CASE("Verifier leaves both sides on the public workload", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference(Comparing(kAlways));

  const Verification result = Verifier(runner, reference).Verify({.hidden_seeds = 2});

  CHECK(result.verdict == v1::Evaluation::VERDICT_CORRECT);
  CHECK(result.checks.oracle() == "fp64");
  const auto prepares = Prepares(reference);
  CHECK(prepares.front()->prepare().workload() == 2);
  CHECK(prepares.back()->prepare().workload() == 0);
}

TEST_CASE("Verifier draws every distribution from a seed of its own", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference(Comparing(kAlways));

  const Verification result = Verifier(runner, reference).Verify({.hidden_seeds = 2});

  std::set<int> seeds;
  std::set<int> distributions;
  for (const v1::Workload& workload : result.checks.workloads()) {
    seeds.insert(workload.seed_index());
    distributions.insert(workload.distribution());
  }
  CHECK(seeds.size() == 9);
  CHECK(distributions.size() == v1::Distribution_ARRAYSIZE);
}

TEST_CASE("Verifier goes on without a distribution that the reference drops", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference([](const v1::ReferenceRequest& request) {
    ReferenceReply reply = Comparing(kAlways)(request);
    if (request.prepare().distribution() == v1::DISTRIBUTION_OFFSET) {
      reply.response.mutable_prepared()->Clear();
      reply.response.mutable_prepared()->set_dropped("output y is not finite");
    }
    return reply;
  });

  const Verification result = Verifier(runner, reference).Verify({.hidden_seeds = 1});

  CHECK(result.verdict == v1::Evaluation::VERDICT_CORRECT);
  CHECK(result.checks.workloads_size() == 7);
  REQUIRE(result.checks.dropped_size() == 1);
  CHECK(result.checks.dropped(0) == v1::DISTRIBUTION_OFFSET);
}

TEST_CASE("Verifier keeps the classes that hold on every workload", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference(Comparing(kAlways));

  const Verification result =
      Verifier(runner, reference).Verify({.hidden_seeds = 1, .has_distributions = false});

  CHECK(result.satisfied == std::vector<v1::Precision>{v1::PRECISION_TF32});
  CHECK(result.errors.at(0).tolerance_needed() == 0.2);
}

TEST_CASE("Verifier asks KernelBench's comparison of unchanged inputs only", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference([](const v1::ReferenceRequest& request) {
    ReferenceReply reply = Comparing(kAlways)(request);
    const bool is_changed = request.compare().prepared() > 11;
    if (request.has_compare()) {
      reply.response.mutable_compared()->set_kernelbench_allclose(!is_changed);
    }
    return reply;
  });

  CHECK(Verifier(runner, reference).Verify({.hidden_seeds = 1}).kernelbench_allclose);
}

TEST_CASE("Verifier fails a program that is wrong on one hidden workload", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference(Comparing([](int workload) { return workload != 1; }));

  const Verification result = Verifier(runner, reference).Verify({.hidden_seeds = 2});

  REQUIRE(result.failure);
  CHECK(result.verdict == v1::Evaluation::VERDICT_WRONG);
  CHECK(result.failure->kind() == v1::Failure::KIND_WRONG_RESULT);
}

TEST_CASE("Verifier poisons with another byte at each execution", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference(Comparing(kAlways));

  Verifier(runner, reference).Verify({.hidden_seeds = 1});

  for (size_t i = 1; i < runner.requests.size(); ++i) {
    CHECK(runner.requests[i - 1].execute().poison() != runner.requests[i].execute().poison());
  }
}

TEST_CASE("Verifier knows the digests of the inputs that the runner keeps", "[verify]") {
  FakeRunner runner(Keeping([](const auto&) { return 77; }));
  FakeReference reference(Comparing(kAlways));
  Verifier verifier(runner, reference);

  verifier.Verify({.hidden_seeds = 2});

  REQUIRE(verifier.kept().size() == 3);
  CHECK(verifier.kept()[0].id != verifier.kept()[1].id);
  CHECK(verifier.kept()[1].digest == 77);
  CHECK(verifier.kept()[1].is_reproducible);
  CHECK_FALSE(verifier.CheckKept(verifier.kept()[0].id, absl::Seconds(1)).failure);
  CHECK(reference.requests.back().compare().prepared() == 12);
}

TEST_CASE("Verifier compares runs whose bytes differ with each other", "[verify]") {
  FakeRunner runner(Keeping([](const auto& request) { return request.execute().poison(); }));
  bool is_unrepeatable = false;
  FakeReference reference([&](const v1::ReferenceRequest& request) {
    ReferenceReply reply = Comparing(kAlways)(request);
    if (request.compare().is_repeat()) {
      reply.response.mutable_compared()->set_is_unrepeatable(is_unrepeatable);
    }
    return reply;
  });
  Verifier verifier(runner, reference);

  CHECK(verifier.Verify({.hidden_seeds = 1}).verdict == v1::Evaluation::VERDICT_CORRECT);
  CHECK_FALSE(verifier.kept().at(0).is_reproducible);

  is_unrepeatable = true;
  const Verification result = verifier.Verify({.hidden_seeds = 1});
  REQUIRE(result.failure);
  CHECK(result.failure->kind() == v1::Failure::KIND_NONDETERMINISTIC);
  CHECK(result.verdict == v1::Evaluation::VERDICT_NONDETERMINISTIC);
}

TEST_CASE("Verifier has fresh inputs kept without an execution", "[verify]") {
  FakeRunner runner(Keeping([](const auto&) { return 77; }));
  FakeReference reference(Comparing(kAlways));
  Verifier verifier(runner, reference);
  verifier.Verify({.hidden_seeds = 1});

  const auto fresh = verifier.PrepareFresh(absl::Seconds(1));

  REQUIRE(fresh);
  CHECK(runner.requests.back().execute().keep_only());
  CHECK(reference.requests.back().prepare().salt() != 0);
  CHECK_FALSE(verifier.CheckFresh(*fresh, absl::Seconds(1)).failure);
  CHECK(reference.requests.back().compare().prepared() == fresh->prepared);
  CHECK(reference.requests.back().compare().forgets());
}

// A runner that keeps inputs and whose outputs stay.
RunnerReply KeepingAndStaying(const v1::RunnerRequest& request) {
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

TEST_CASE("Verifier forgets fresh inputs that nobody takes", "[verify]") {
  FakeRunner runner(KeepingAndStaying);
  bool is_public_correct = true;
  FakeReference reference(Comparing([&](int seed) { return seed != 0 || is_public_correct; }));
  Verifier verifier(runner, reference);

  SECTION("of an evaluation that ends before") {
    verifier.Verify(kWithFresh);
    verifier.DropFresh();
  }
  SECTION("of a program that is wrong") {
    is_public_correct = false;
    REQUIRE(verifier.Verify(kWithFresh).failure);
    verifier.DropFresh();
  }
  SECTION("that the runner refuses") {
    FakeRunner refusing([](const v1::RunnerRequest& request) {
      RunnerReply reply = Outputs(request);
      reply.response.mutable_outputs()->set_stay(true);
      return reply;
    });
    REQUIRE_FALSE(Verifier(refusing, reference).Verify(kWithFresh).failure);
  }
  CHECK(CountFresh(reference) == 1);
  CHECK(reference.requests.back().release().prepared() == 1010);
}

TEST_CASE("Verifier goes on without fresh inputs where the runner refuses them", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference(Comparing(kAlways));
  Verifier verifier(runner, reference);
  verifier.Verify({.hidden_seeds = 1});

  CHECK(verifier.kept().empty());
  CHECK_FALSE(verifier.PrepareFresh(absl::Seconds(1)));
  CHECK_FALSE(verifier.trouble());
}

TEST_CASE("Verifier blames the candidate when the runner dies", "[verify]") {
  FakeRunner runner([](const auto&) {
    return RunnerReply{.ending = RunnerReply::Ending::kDied, .detail = "signal 11"};
  });
  FakeReference reference(Comparing(kAlways));

  const Verification result = Verifier(runner, reference).Verify({});

  REQUIRE(result.failure);
  CHECK(result.failure->kind() == v1::Failure::KIND_CRASH);
  CHECK(result.verdict == v1::Evaluation::VERDICT_UNSAFE);
}

TEST_CASE("Verifier does not blame the candidate when the reference dies", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference(
      [](const auto&) { return ReferenceReply{.ending = ReferenceReply::Ending::kDied}; });
  Verifier verifier(runner, reference);

  const Verification result = verifier.Verify({});

  CHECK_FALSE(result.failure);
  REQUIRE(verifier.trouble());
  CHECK(verifier.trouble()->reason == "REFERENCE_DIED");
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
  return [&diary, count = 0](const v1::RunnerRequest& request) mutable {
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
  FakeReference reference([&](const v1::ReferenceRequest& request) {
    // The second of three workloads has handle 11 and is executed before this answer.
    if (request.compare().prepared() == 12) is_late = !diary.Await("execute 2");
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
  FakeRunner runner([&, count = 0](const v1::RunnerRequest& request) mutable {
    diary.Write(absl::StrCat("execute ", ++count));
    RunnerReply reply = Outputs(request);
    reply.response.mutable_outputs()->set_stay(stay);
    return reply;
  });
  FakeReference reference([&](const v1::ReferenceRequest& request) {
    if (request.has_compare()) diary.Write(absl::StrCat("compare ", request.compare().prepared()));
    return Comparing(kAlways)(request);
  });

  Verifier(runner, reference).Verify({.hidden_seeds = 5, .has_distributions = false});

  // Seed 5 is the first execution; each stays for none or for one more.
  for (int seed = 5; seed > 2; --seed) {
    const int execution = 6 - seed + (stay ? 2 : 1);
    CHECK(diary.Find(absl::StrCat("compare ", 10 + seed)) <
          diary.Find(absl::StrCat("execute ", execution)));
  }
}

TEST_CASE("Verifier tells of the first workload that fails", "[verify]") {
  Diary diary;
  FakeRunner runner([&, answer = Staying(diary)](const v1::RunnerRequest& request) {
    RunnerReply reply = answer(request);
    if (diary.Find("execute 2") >= 0) {
      reply = {.ending = RunnerReply::Ending::kDied, .detail = "signal 11"};
    }
    return reply;
  });
  bool is_first_correct = true;
  bool does_reference_die = false;
  FakeReference reference([&](const v1::ReferenceRequest& request) {
    if (request.has_compare()) {
      diary.Await("execute 2");
      if (does_reference_die) return ReferenceReply{.ending = ReferenceReply::Ending::kDied};
    }
    return Comparing([&](int) { return is_first_correct; })(request);
  });
  Verifier verifier(runner, reference);
  const Verifier::Options options{.hidden_seeds = 2, .has_distributions = false};

  SECTION("a wrong result before a crash") {
    is_first_correct = false;
    CHECK(verifier.Verify(options).failure->kind() == v1::Failure::KIND_WRONG_RESULT);
  }
  SECTION("a crash after a right one") {
    const Verification result = verifier.Verify(options);
    CHECK(result.failure->kind() == v1::Failure::KIND_CRASH);
    CHECK(result.checks.workloads_size() == 1);
  }
  SECTION("a crash that takes the reference process along") {
    does_reference_die = true;
    CHECK(verifier.Verify(options).failure->kind() == v1::Failure::KIND_CRASH);
  }
  CHECK_FALSE(verifier.trouble());
}

TEST_CASE("Verifier says when a program became wrong while it was timed", "[verify]") {
  FakeRunner runner(Outputs);
  bool is_correct = true;
  FakeReference reference(Comparing([&](int) { return is_correct; }));
  Verifier verifier(runner, reference);
  verifier.Verify({.hidden_seeds = 0});
  is_correct = false;

  const Verification result = verifier.Recheck(absl::Seconds(1));

  REQUIRE(result.failure);
  CHECK(result.failure->stage() == v1::STAGE_MEASURE);
  CHECK(result.failure->message().find("wrong after timing") != std::string::npos);
}

}  // namespace
}  // namespace mtmc::worker
