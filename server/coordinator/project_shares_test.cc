// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/project_shares.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace mtmc::coordinator {
namespace {

// Whom the shares would serve next.
std::string NextOf(const ProjectShares& shares, const std::vector<std::string>& waiting) {
  std::string next = waiting.front();
  for (const std::string& project : waiting) {
    if (shares.ClockOf(project) < shares.ClockOf(next)) next = project;
  }
  return next;
}

}  // namespace

TEST_CASE("The project of a job is the parent of its name", "[shares]") {
  CHECK(ProjectShares::ProjectOf("projects/p/jobs/j") == "projects/p");
  CHECK(ProjectShares::ProjectOf("j").empty());
}

TEST_CASE("Projects that wait all the time get equal device time, whatever their work takes",
          "[shares]") {
  std::mt19937 random(7);
  ProjectShares shares;
  const std::vector<std::string> projects = {"fast", "slow", "mixed"};
  std::map<std::string, absl::Duration> used;
  for (const std::string& project : projects) shares.NoteWaiting(project);
  for (int i = 0; i < 5000; ++i) {
    const std::string project = NextOf(shares, projects);
    const double seconds = project == "fast"   ? 0.2
                           : project == "slow" ? 10
                                               : std::uniform_real_distribution(0., 5.)(random);
    shares.Settle(project, shares.Charge(project), absl::Seconds(seconds));
    used[project] += absl::Seconds(seconds);
  }
  // The last grant may be the longest.
  for (const std::string& project : projects) {
    CHECK(absl::AbsDuration(used[project] - used["slow"]) <= absl::Seconds(20));
  }
}

TEST_CASE("A project that was away saves nothing up, and waits for nobody who did not",
          "[shares]") {
  ProjectShares shares;
  shares.NoteWaiting("busy");
  for (int i = 0; i < 100; ++i) {
    shares.Settle("busy", shares.Charge("busy"), absl::Seconds(3));
  }
  shares.NoteWaiting("late");
  CHECK(NextOf(shares, {"busy", "late"}) == "late");
  // From now on they take turns.
  int busy = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string project = NextOf(shares, {"busy", "late"});
    shares.Settle(project, shares.Charge(project), absl::Seconds(3));
    if (project == "busy") ++busy;
  }
  CHECK(busy >= 48);
}

TEST_CASE("Grants that are not settled are spread over the projects that wait", "[shares]") {
  ProjectShares shares;
  std::map<std::string, int> grants;
  for (const char* project : {"a", "b", "c"}) shares.NoteWaiting(project);
  for (int i = 0; i < 30; ++i) {
    const std::string project = NextOf(shares, {"a", "b", "c"});
    shares.Charge(project);
    ++grants[project];
  }
  CHECK(grants == std::map<std::string, int>{{"a", 10}, {"b", 10}, {"c", 10}});
}

TEST_CASE("Work that takes no time starves nobody", "[shares]") {
  ProjectShares shares;
  shares.NoteWaiting("flood");
  shares.NoteWaiting("other");
  std::map<std::string, int> grants;
  for (int i = 0; i < 10'000; ++i) {
    const std::string project = NextOf(shares, {"flood", "other"});
    const absl::Duration took = project == "flood" ? absl::ZeroDuration() : absl::Seconds(1);
    shares.Settle(project, shares.Charge(project), took);
    ++grants[project];
  }
  CHECK(grants["other"] >= 9);
}

TEST_CASE("Shares of very many projects are forgotten where nothing is lost", "[shares]") {
  ProjectShares shares;
  for (int i = 0; i < 5000; ++i) {
    const std::string project = "p" + std::to_string(i);
    shares.NoteWaiting(project);
    shares.Settle(project, shares.Charge(project), absl::ZeroDuration());
  }
  shares.NoteWaiting("heavy");
  shares.Settle("heavy", shares.Charge("heavy"), absl::Hours(1));
  for (int i = 0; i < 5000; ++i) shares.NoteWaiting("q" + std::to_string(i));
  CHECK(NextOf(shares, {"heavy", "q1"}) == "q1");
}

}  // namespace mtmc::coordinator
