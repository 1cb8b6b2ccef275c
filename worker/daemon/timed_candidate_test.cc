// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/timed_candidate.h"

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/testing/status_matchers.h"
#include "mtmc/pipe/v1/reference.pb.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "worker/verify/fake_party.h"

namespace mtmc::worker {
namespace {

using testing::IsOk;
using testing::StatusIs;

// How a program does on one execution.
struct Conduct {
  double seconds = 1e-3;
  bool is_right = true;
  // Differs from run to run of a program that is not reproducible.
  uint64_t noise = 0;
};

// A runner and a reference around a program whose conduct a test writes down. The
// runner keeps inputs, executes unseen ones last, and looks at every execution.
class Scene {
 public:
  struct Execution {
    bool is_timed = false;
    bool is_fresh = false;
    int number = 0;
  };

  using Program = std::function<Conduct(const Execution&)>;

  explicit Scene(Program program) : program_(std::move(program)) {}

  // Verifies, then times `turns` turns of five samples and concludes.
  absl::Status Play(int turns) {
    const Verification verified = verifier_.Verify({.has_distributions = false});
    REQUIRE_FALSE(verified.failure);
    REQUIRE(verifier_.kept().size() >= 2);
    candidate.emplace(runner_, verifier_, TimedCandidate::Options{});
    std::vector<double> seconds;
    for (int turn = 0; turn < turns; ++turn) {
      auto block = candidate->Take({.samples = 5, .warmups = 1});
      if (!block.ok()) return block.status();
      seconds.insert(seconds.end(), block->seconds.begin(), block->seconds.end());
    }
    return candidate->Conclude(seconds);
  }

  std::optional<TimedCandidate> candidate;

 private:
  using RunnerReply = Reply<pipe::v1::RunnerResponse>;
  using ReferenceReply = Reply<pipe::v1::ReferenceResponse>;

  Conduct Execute(const std::string& workload, bool is_timed, bool is_fresh) {
    const Conduct conduct = program_({is_timed, is_fresh, number_++});
    is_right_ = conduct.is_right;
    digest_ = std::hash<std::string>()(workload) + (is_right_ ? 0 : 1) + 10 * conduct.noise;
    return conduct;
  }

  RunnerReply AnswerRunner(const pipe::v1::RunnerRequest& request) {
    RunnerReply reply{.ending = RunnerReply::Ending::kAnswered};
    if (request.has_time()) {
      Time(request.time(), *reply.response.mutable_timed());
      return reply;
    }
    auto& outputs = *reply.response.mutable_outputs();
    if (request.has_execute()) {
      const int64_t id = request.execute().keep_as();
      outputs.set_kept(id);
      const std::string workload = request.execute().kept()
                                       ? workloads_[request.execute().kept()]
                                       : request.execute().inputs(0).file().path();
      workloads_[id] = workload;
      if (request.execute().keep_only()) {
        unseen_.insert(id);
        return reply;
      }
      Execute(workload, /*is_timed=*/false, /*is_fresh=*/false);
    }
    outputs.add_outputs()->set_name("y");
    outputs.set_digest(digest_);
    return reply;
  }

  void Time(const pipe::v1::RunnerRequest::Time& time, pipe::v1::RunnerResponse::Timed& timed) {
    std::vector<int64_t> seen;
    std::vector<int64_t> unseen;
    for (const int64_t id : time.kept()) (unseen_.count(id) ? unseen : seen).push_back(id);
    for (int i = 0; i < time.samples(); ++i) {
      const bool is_fresh = i + 1 == time.samples() && !unseen.empty();
      const int64_t id = is_fresh ? unseen[0] : seen[static_cast<size_t>(i) % seen.size()];
      const Conduct conduct = Execute(workloads_[id], /*is_timed=*/true, is_fresh);
      unseen_.erase(id);
      auto& checked = *timed.add_checked();
      checked.set_sample(timed.samples_seconds_size());
      checked.set_kept(id);
      checked.set_digest(digest_);
      timed.add_samples_seconds(conduct.seconds);
    }
    timed.set_max_unseen_seconds(unseen_seconds);
  }

  ReferenceReply AnswerReference(const pipe::v1::ReferenceRequest& request) {
    ReferenceReply reply{.ending = ReferenceReply::Ending::kAnswered};
    if (request.has_prepare()) {
      pipe::v1::SharedTensor& input = *reply.response.mutable_prepared()->add_inputs();
      input.set_name("x");
      input.mutable_file()->set_path(absl::StrCat("workload ", request.prepare().workload()));
      reply.response.mutable_prepared()->set_prepared(10 + request.prepare().workload());
    } else {
      reply.response.mutable_compared()->set_is_correct(is_right_);
      reply.response.mutable_compared()->set_message("output y is out of bound");
    }
    return reply;
  }

  const Program program_;
  int number_ = 0;
  bool is_right_ = true;
  uint64_t digest_ = 0;
  std::set<int64_t> unseen_;
  // By number under which they are kept.
  std::map<int64_t, std::string> workloads_;
  FakeParty<pipe::v1::RunnerRequest, pipe::v1::RunnerResponse> runner_{
      [this](const pipe::v1::RunnerRequest& request) { return AnswerRunner(request); }};
  FakeParty<pipe::v1::ReferenceRequest, pipe::v1::ReferenceResponse> reference_{
      [this](const pipe::v1::ReferenceRequest& request) { return AnswerReference(request); }};
  Verifier verifier_{runner_, reference_};

 public:
  double unseen_seconds = 0;
};

constexpr int kTurns = 12;

TEST_CASE("An honest program is timed and checked", "[daemon]") {
  Scene scene([](const Scene::Execution&) { return Conduct{}; });

  CHECK_THAT(scene.Play(kTurns), IsOk());

  v1::VerificationSummary checks;
  scene.candidate->AddCounts(checks);
  CHECK(checks.timed_executions() == 5 * kTurns + 1);
  CHECK(checks.checked_executions() > 5 * kTurns);
  CHECK(checks.fresh_executions() == 1);
}

TEST_CASE("A session that ends early still has a fresh execution", "[daemon]") {
  Scene scene([](const Scene::Execution&) { return Conduct{}; });

  CHECK_THAT(scene.Play(1), IsOk());

  v1::VerificationSummary checks;
  scene.candidate->AddCounts(checks);
  CHECK(checks.fresh_executions() == 1);
}

TEST_CASE("A program that is wrong on inputs it had not seen is caught", "[daemon]") {
  Scene scene(
      [](const Scene::Execution& execution) { return Conduct{.is_right = !execution.is_fresh}; });

  CHECK_THAT(scene.Play(kTurns), StatusIs(absl::StatusCode::kAborted));

  REQUIRE(scene.candidate->failure());
  CHECK(scene.candidate->failure()->kind() == v1::Failure::KIND_WRONG_RESULT);
  CHECK_THAT(scene.candidate->failure()->message(), Catch::Contains("had not seen"));
}

TEST_CASE("A program that replays what it knows is caught by its time", "[daemon]") {
  Scene scene([](const Scene::Execution& execution) {
    return Conduct{.seconds = execution.is_timed && !execution.is_fresh ? 1e-4 : 1e-3};
  });

  CHECK_THAT(scene.Play(kTurns), StatusIs(absl::StatusCode::kAborted));

  REQUIRE(scene.candidate->failure());
  CHECK(scene.candidate->failure()->kind() == v1::Failure::KIND_CHEAT);
  CHECK_THAT(scene.candidate->failure()->message(), Catch::Contains("replays"));
}

TEST_CASE("A program that replays a third of its executions is caught", "[daemon]") {
  Scene scene([](const Scene::Execution& execution) {
    const bool is_replayed = execution.is_timed && !execution.is_fresh && execution.number % 3 == 0;
    return Conduct{.seconds = is_replayed ? 1e-4 : 1e-3};
  });

  CHECK_THAT(scene.Play(kTurns), StatusIs(absl::StatusCode::kAborted));

  REQUIRE(scene.candidate->failure());
  CHECK(scene.candidate->failure()->kind() == v1::Failure::KIND_CHEAT);
}

TEST_CASE("A program that is fast now and then, on any inputs, is honest", "[daemon]") {
  Scene scene([](const Scene::Execution& execution) {
    const bool is_fast = execution.is_fresh || execution.number % 3 == 0;
    return Conduct{.seconds = is_fast ? 1e-4 : 1e-3};
  });

  CHECK_THAT(scene.Play(kTurns), IsOk());
}

TEST_CASE("A program that is wrong only when timed is caught", "[daemon]") {
  Scene scene(
      [](const Scene::Execution& execution) { return Conduct{.is_right = !execution.is_timed}; });

  CHECK_THAT(scene.Play(kTurns), StatusIs(absl::StatusCode::kAborted));

  REQUIRE(scene.candidate->failure());
  CHECK(scene.candidate->failure()->kind() == v1::Failure::KIND_WRONG_RESULT);
}

TEST_CASE("A program whose rounding differs from run to run passes", "[daemon]") {
  Scene scene([](const Scene::Execution& execution) {
    return Conduct{.noise = static_cast<uint64_t>(execution.number % 7)};
  });

  CHECK_THAT(scene.Play(kTurns), IsOk());
}

TEST_CASE("A digest that differs from the verified one calls for the oracle", "[daemon]") {
  // Reproducible while it is verified, and then wrong in every other execution.
  Scene scene([](const Scene::Execution& execution) {
    return Conduct{.is_right = !execution.is_timed || execution.number % 2 == 0};
  });

  const absl::Status status = scene.Play(40);

  CHECK_THAT(status, StatusIs(absl::StatusCode::kAborted));
}

TEST_CASE("Work that the events did not see is a cheat", "[daemon]") {
  Scene scene([](const Scene::Execution&) { return Conduct{}; });
  scene.unseen_seconds = 5e-3;

  CHECK_THAT(scene.Play(kTurns), StatusIs(absl::StatusCode::kAborted));

  REQUIRE(scene.candidate->failure());
  CHECK(scene.candidate->failure()->kind() == v1::Failure::KIND_CHEAT);
}

}  // namespace
}  // namespace mtmc::worker
