// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/succession.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "common/testing/status_matchers.h"
#include "server/store/fake_job_store.h"

namespace mtmc::coordinator {
namespace {

using testing::IsOk;
using testing::StatusIs;

constexpr absl::Duration kPatience = absl::Seconds(5);

Succession Make(const std::string& name, store::OwnerStore& store) {
  return {{.name = name, .address = name + ":1", .patience = kPatience}, store};
}

// A store that cannot be reached now and then, and that may lose the answer to a change.
class RestlessStore final : public store::OwnerStore {
 public:
  explicit RestlessStore(store::OwnerStore& store) : store_(store) {}

  bool is_down = false;
  bool loses_answers = false;

  absl::StatusOr<store::OwnerRecord> ReadOwner() override {
    if (is_down) return absl::UnavailableError("down");
    return store_.ReadOwner();
  }

  absl::Status ReplaceOwner(const store::OwnerRecord& seen,
                            const store::OwnerRecord& next) override {
    if (is_down) return absl::UnavailableError("down");
    const absl::Status status = store_.ReplaceOwner(seen, next);
    return loses_answers ? absl::UnavailableError("lost") : status;
  }

 private:
  store::OwnerStore& store_;
};

}  // namespace

TEST_CASE("Succession owns the jobs of a store that nobody owns", "[coordinator]") {
  store::FakeJobStore store;
  Succession first = Make("a", store);

  const auto view = first.Step(absl::ZeroDuration());

  REQUIRE_THAT(view.status(), IsOk());
  CHECK(view->is_mine);
  CHECK(view->owner.epoch == 1);
  CHECK(store.ReadOwner()->address == "a:1");
}

TEST_CASE("Succession leaves the jobs to an owner that lives", "[coordinator]") {
  store::FakeJobStore store;
  Succession first = Make("a", store);
  Succession second = Make("b", store);

  for (int second_of_time = 0; second_of_time < 20; ++second_of_time) {
    CHECK(first.Step(absl::Seconds(second_of_time))->is_mine);
    const auto view = *second.Step(absl::Seconds(second_of_time));
    CHECK_FALSE(view.is_mine);
    CHECK(view.owner.address == "a:1");
  }
}

TEST_CASE("Succession takes over from an owner that is silent for its patience", "[coordinator]") {
  store::FakeJobStore store;
  Succession first = Make("a", store);
  Succession second = Make("b", store);
  CHECK(first.Step(absl::ZeroDuration())->is_mine);

  CHECK_FALSE(second.Step(absl::Seconds(100))->is_mine);
  CHECK_FALSE(second.Step(absl::Seconds(104))->is_mine);
  const auto view = *second.Step(absl::Seconds(105));

  CHECK(view.is_mine);
  CHECK(view.owner.epoch == 2);
  CHECK_FALSE(first.Step(absl::Seconds(106))->is_mine);
}

TEST_CASE("Succession takes over at once from an owner that resigned", "[coordinator]") {
  store::FakeJobStore store;
  Succession first = Make("a", store);
  Succession second = Make("b", store);
  CHECK(first.Step(absl::ZeroDuration())->is_mine);
  CHECK_FALSE(second.Step(absl::ZeroDuration())->is_mine);

  REQUIRE_THAT(first.Resign(), IsOk());

  const auto view = *second.Step(absl::ZeroDuration());
  CHECK(view.is_mine);
  CHECK(view.owner.epoch == 2);
  CHECK_THAT(first.Resign(), IsOk());
  CHECK(store.ReadOwner()->name == "b");
}

TEST_CASE("Succession does not take an owner for dead after the store was down", "[coordinator]") {
  store::FakeJobStore memory;
  RestlessStore store(memory);
  Succession first = Make("a", store);
  Succession second = Make("b", store);
  CHECK(first.Step(absl::ZeroDuration())->is_mine);
  CHECK_FALSE(second.Step(absl::ZeroDuration())->is_mine);

  store.is_down = true;
  CHECK_THAT(second.Step(absl::Seconds(10)).status(), StatusIs(absl::StatusCode::kUnavailable));
  store.is_down = false;

  CHECK_FALSE(second.Step(absl::Seconds(11))->is_mine);
  CHECK_FALSE(second.Step(absl::Seconds(15))->is_mine);
  CHECK(second.Step(absl::Seconds(16))->is_mine);
}

TEST_CASE("Succession knows itself as owner although the answer was lost", "[coordinator]") {
  store::FakeJobStore memory;
  RestlessStore store(memory);
  Succession first = Make("a", store);
  store.loses_answers = true;
  CHECK_THAT(first.Step(absl::ZeroDuration()).status(), StatusIs(absl::StatusCode::kUnavailable));

  store.loses_answers = false;
  const auto view = *first.Step(absl::Seconds(1));

  CHECK(view.is_mine);
  CHECK(view.owner.epoch == 1);
}

// Any pauses of any length: at most one of them owns an epoch, and whoever has stopped
// for good is followed by another.
TEST_CASE("Succession gives an epoch to one of three that pause at random", "[coordinator]") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  store::FakeJobStore store;
  const std::vector<std::string> names = {"a", "b", "c"};
  std::vector<Succession> all;
  for (const std::string& name : names) all.push_back(Make(name, store));
  std::vector<absl::Duration> awake(3, absl::ZeroDuration());
  std::map<int64_t, size_t> owners;

  for (absl::Duration now; now < absl::Hours(1); now += absl::Seconds(1)) {
    for (size_t who = 0; who < all.size(); ++who) {
      if (now < awake[who]) continue;
      if (random() % 10 == 0) awake[who] = now + absl::Seconds(random() % 20);
      const auto view = *all[who].Step(now);
      if (view.is_mine) CHECK(owners.emplace(view.owner.epoch, who).first->second == who);
    }
  }

  CHECK(owners.size() > 10);
  CHECK(owners.rbegin()->first == static_cast<int64_t>(owners.size()));
}

}  // namespace mtmc::coordinator
