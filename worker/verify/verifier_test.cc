// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/verifier.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "worker/verify/verifier_fixture.h"

namespace mtmc::worker {
namespace {

TEST_CASE("Verifier leaves both sides on a hidden seed", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference(Comparing(kAlways));

  const Verification result = Verifier(runner, reference).Verify({.hidden_seeds = 2});

  CHECK(result.verdict == v1::Evaluation::VERDICT_CORRECT);
  CHECK(result.checks.oracle() == "fp64");
  const auto prepares = Prepares(reference);
  CHECK(prepares.front()->prepare().workload() == 0);
  CHECK(prepares.back()->prepare().workload() == 1);
}

TEST_CASE("Verifier draws every distribution from a seed of its own", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference(Comparing(kAlways));

  Verifier verifier(runner, reference);
  Verification result = verifier.Verify({.hidden_seeds = 2});
  result.checks.MergeFrom(verifier.VerifyWinner({}).checks);

  std::set<int> seeds;
  std::set<int> distributions;
  std::set<int> as_made;
  std::set<int> mixed;
  for (const v1::Workload& workload : result.checks.workloads()) {
    distributions.insert(workload.distribution());
    const int seed = workload.seed_index();
    (seed < 200 ? seeds : seed < 300 ? as_made : mixed).insert(seed);
  }
  CHECK(distributions.size() == v1::Distribution_ARRAYSIZE);
  // The public one and two hidden seeds besides.
  CHECK(seeds.size() == distributions.size() - 1 + 3);
  // With the model as its constructor made it: a part of all.
  CHECK(as_made == std::set<int>{202, 203, 204, 209, 213, 214, 216});
  // Two of every program, and of what may become the best twenty-four whose tensors go apart and
  // eight whose go together.
  CHECK(mixed.size() == 34);
}

TEST_CASE("What is prepared ahead is what is asked for, in its order, until it is called",
          "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference(Comparing(kAlways));
  FakeReference other(Comparing(kAlways));
  Verifier asking(runner, other);
  REQUIRE_FALSE(asking.Verify({}).failure);
  const size_t usual = Prepares(other).size();
  REQUIRE_FALSE(asking.VerifyWinner({}).failure);
  const auto asked = Prepares(other);
  runner.requests.clear();

  size_t most = 4;
  size_t expected = 4;
  bool is_winner = false;
  SECTION("for a part") {}
  SECTION("for all of a candidate") {
    most = 1000;
    expected = usual;
  }
  SECTION("for all of a winner") {
    most = 1000;
    expected = asked.size();
    is_winner = true;
  }
  Verifier(runner, reference).PrepareAhead({}, is_winner, [&] {
    return reference.requests.size() == most;
  });

  const auto ahead = Prepares(reference);
  REQUIRE(ahead.size() == expected);
  CHECK(runner.requests.empty());
  for (size_t i = 0; i < ahead.size(); ++i) {
    CHECK(ahead[i]->prepare().workload() == asked[i]->prepare().workload());
    CHECK(ahead[i]->prepare().distribution() == asked[i]->prepare().distribution());
  }
}

TEST_CASE("Verifier has the inputs of hidden seeds kept, and never the public ones", "[verify]") {
  FakeRunner runner(Keeping([](const auto&) { return 77; }));
  FakeReference reference(Comparing(kAlways));
  Verifier verifier(runner, reference);

  SECTION("for the first session") { verifier.Verify({}); }
  SECTION("for the second") { verifier.VerifyWinner({}); }

  REQUIRE(verifier.kept().size() >= 2);
  for (const KeptInputs& inputs : verifier.kept()) {
    verifier.CheckKept(inputs.id, absl::Seconds(1));
    CHECK(reference.requests.back().compare().prepared() > 10);
    CHECK(reference.requests.back().compare().prepared() < 20);
  }
}

TEST_CASE("Verifier finds a timed set on which the program became wrong", "[verify]") {
  FakeRunner runner(Keeping([](const auto&) { return 77; }));
  int wrong = -1;
  FakeReference reference(Comparing([&](int workload) { return workload != wrong; }));
  Verifier verifier(runner, reference);
  verifier.Verify({.hidden_seeds = 3});

  CHECK(verifier.VerifyKept(absl::Seconds(1)).verdict == v1::Evaluation::VERDICT_CORRECT);
  wrong = 2;
  CHECK(verifier.VerifyKept(absl::Seconds(1)).failure);
}

TEST_CASE("Verifier reports what is made of NaN and lets it judge no precision", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference([](const pipe::v1::ReferenceRequest& request) {
    ReferenceReply reply = Comparing(kAlways)(request);
    if (request.compare().prepared() == 110 + v1::DISTRIBUTION_NONFINITE) {
      reply.response.mutable_compared()->clear_satisfied();
      reply.response.mutable_compared()->set_remark("output y is finite where it has NaN");
    }
    return reply;
  });

  const Verification result = Verifier(runner, reference).VerifyWinner({});

  CHECK(result.verdict == v1::Evaluation::VERDICT_CORRECT);
  CHECK(result.checks.nonfinite() == "output y is finite where it has NaN");
  CHECK(result.satisfied == std::vector<v1::Precision>{v1::PRECISION_TF32});
}

TEST_CASE("Verifier goes on without a distribution that the reference drops", "[verify]") {
  FakeRunner runner(Outputs);
  FakeReference reference([](const pipe::v1::ReferenceRequest& request) {
    ReferenceReply reply = Comparing(kAlways)(request);
    if (request.prepare().distribution() == v1::DISTRIBUTION_OFFSET) {
      reply.response.mutable_prepared()->Clear();
      reply.response.mutable_prepared()->set_dropped("output y is not finite");
    }
    return reply;
  });

  const Verification result = Verifier(runner, reference).Verify({.hidden_seeds = 1});

  CHECK(result.verdict == v1::Evaluation::VERDICT_CORRECT);
  CHECK(result.checks.workloads_size() == 10);
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
  FakeReference reference([](const pipe::v1::ReferenceRequest& request) {
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

TEST_CASE("Verifier knows the digests of the inputs that the runner keeps", "[verify]") {
  FakeRunner runner(Keeping([](const auto&) { return 77; }));
  FakeReference reference(Comparing(kAlways));
  Verifier verifier(runner, reference);

  verifier.Verify({.hidden_seeds = 2});

  REQUIRE(verifier.kept().size() == 2);
  CHECK(verifier.kept()[0].id != verifier.kept()[1].id);
  CHECK(verifier.kept()[1].digest == 77);
  CHECK(verifier.kept()[1].is_reproducible);
  CHECK_FALSE(verifier.CheckKept(verifier.kept()[0].id, absl::Seconds(1)).failure);
  CHECK(reference.requests.back().compare().prepared() == 12);
}

TEST_CASE("Verifier compares runs whose bytes differ with each other", "[verify]") {
  FakeRunner runner(Keeping([digest = 0](const auto&) mutable { return ++digest; }));
  bool is_unrepeatable = false;
  FakeReference reference([&](const pipe::v1::ReferenceRequest& request) {
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
