// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/sweep.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "mtmc/pipe/v1/reference.pb.h"
#include "worker/verify/fake_party.h"

namespace mtmc::worker {
namespace {

using RunnerReply = Reply<pipe::v1::RunnerResponse>;
using ReferenceReply = Reply<pipe::v1::ReferenceResponse>;

// What a variant of the fake program does.
struct Behaviour {
  double seconds = 1;
  bool is_correct = true;
  bool loads = true;
  // Of its first execution; 0 is `seconds`.
  double first_seconds = 0;
};

// A device and a reference on which variant TILE = i behaves as `behaviours[i]`.
struct Track {
  std::vector<Behaviour> behaviours;
  int64_t loaded = 0;
  // Samples asked of each variant, and how often it was compared.
  std::map<int64_t, int> samples;
  std::map<int64_t, int> compared;
  FakeParty<pipe::v1::RunnerRequest, pipe::v1::RunnerResponse> runner;
  FakeParty<pipe::v1::ReferenceRequest, pipe::v1::ReferenceResponse> reference;
  Verifier verifier{runner, reference};

  explicit Track(std::vector<Behaviour> all)
      : behaviours(std::move(all)),
        runner([this](const pipe::v1::RunnerRequest& request) { return Run(request); }),
        reference([this](const pipe::v1::ReferenceRequest& request) { return Refer(request); }) {}

  RunnerReply Run(const pipe::v1::RunnerRequest& request) {
    RunnerReply reply{.ending = RunnerReply::Ending::kAnswered};
    if (request.has_load()) loaded = request.load().parameters().at("TILE");
    const Behaviour& behaviour = behaviours[static_cast<size_t>(loaded)];
    if (request.has_load() && !behaviour.loads) {
      reply.response.mutable_failure()->set_kind(v1::Failure::KIND_LAUNCH);
    } else if (request.has_execute()) {
      reply.response.mutable_outputs()->set_seconds(
          behaviour.first_seconds > 0 ? behaviour.first_seconds : behaviour.seconds);
    } else if (request.has_time()) {
      samples[loaded] += request.time().samples();
      for (int i = 0; i < request.time().samples(); ++i) {
        reply.response.mutable_timed()->add_samples_seconds(behaviour.seconds);
      }
    }
    return reply;
  }

  ReferenceReply Refer(const pipe::v1::ReferenceRequest& request) {
    ReferenceReply reply{.ending = ReferenceReply::Ending::kAnswered};
    if (request.has_prepare()) {
      reply.response.mutable_prepared()->set_prepared(1);
    } else {
      ++compared[loaded];
      reply.response.mutable_compared()->set_is_correct(
          behaviours[static_cast<size_t>(loaded)].is_correct);
    }
    return reply;
  }

  std::vector<BuiltVariant> Variants() const {
    std::vector<BuiltVariant> variants(behaviours.size());
    for (size_t i = 0; i < variants.size(); ++i) {
      (*variants[i].variant.mutable_parameters())["TILE"] = static_cast<int64_t>(i);
    }
    return variants;
  }

  std::variant<Sweep::Outcome, StageEnd> Run(absl::Duration limit = absl::Minutes(1)) {
    verifier.Verify({.hidden_seeds = 0, .has_distributions = false});
    compared.clear();
    return Sweep(runner, verifier, {.text = "", .deadline = absl::Now() + limit}).Run(Variants());
  }
};

int64_t TileOf(const v1::Variant& variant) { return variant.parameters().at("TILE"); }

}  // namespace

TEST_CASE("Sweep finds the fastest variant and ranks the others", "[worker]") {
  Track track({{3}, {1}, {2}, {5}});

  const auto swept = track.Run();

  const auto& outcome = std::get<Sweep::Outcome>(swept);
  CHECK(outcome.best == 1);
  REQUIRE(outcome.variants.size() == 4);
  CHECK(TileOf(outcome.variants[0]) == 1);
  CHECK(TileOf(outcome.variants[3]) == 3);
}

TEST_CASE("Sweep takes one execution of a variant that is far behind", "[worker]") {
  Track track({{1}, {9}, {1.1}});

  const auto swept = track.Run();

  CHECK(track.samples[1] == 0);
  CHECK(track.compared[1] == 0);
  CHECK(std::get<Sweep::Outcome>(swept).variants[2].median_seconds() == 9);
}

TEST_CASE("Sweep forgives a slow first execution", "[worker]") {
  Track track({{1}, {.seconds = 0.8, .first_seconds = 1.5}});

  CHECK(std::get<Sweep::Outcome>(track.Run()).best == 1);
}

TEST_CASE("A variant that is fast and wrong does not win", "[worker]") {
  Track track({{3}, {.seconds = 0.1, .is_correct = false}, {2}});

  const auto swept = track.Run();

  const auto& outcome = std::get<Sweep::Outcome>(swept);
  CHECK(outcome.best == 2);
  CHECK(TileOf(outcome.variants.back()) == 1);
  CHECK(outcome.variants.back().failure().kind() == v1::Failure::KIND_WRONG_RESULT);
}

TEST_CASE("Sweep compares the finalists and nobody else", "[worker]") {
  std::vector<Behaviour> behaviours;
  for (int i = 0; i < 64; ++i) behaviours.push_back({.seconds = 1.0 + 0.01 * i});
  Track track(behaviours);

  const auto swept = track.Run();

  int compared = 0;
  for (const auto& [tile, count] : track.compared) compared += count;
  CHECK(compared == 3);
  CHECK(std::get<Sweep::Outcome>(swept).best == 0);
}

TEST_CASE("Sweep goes on without a variant that does not load", "[worker]") {
  Track track({{2}, {.seconds = 1, .loads = false}, {1.5}});

  const auto swept = track.Run();

  const auto& outcome = std::get<Sweep::Outcome>(swept);
  CHECK(outcome.best == 2);
  CHECK(outcome.variants.back().failure().kind() == v1::Failure::KIND_LAUNCH);
  CHECK_FALSE(outcome.variants.back().has_median_seconds());
}

TEST_CASE("Sweep fails when no variant is right", "[worker]") {
  Track track({{.seconds = 1, .is_correct = false}, {.seconds = 2, .is_correct = false}});

  const auto swept = track.Run();

  const auto& end = std::get<StageEnd>(swept);
  CHECK(std::get<v1::Failure>(end).kind() == v1::Failure::KIND_WRONG_RESULT);
}

}  // namespace mtmc::worker
