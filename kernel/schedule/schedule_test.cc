// SPDX-License-Identifier: Apache-2.0
#include "kernel/schedule/schedule.h"

#include <catch2/catch.hpp>

namespace mtmc::kernel {
namespace {

Schedule MakeSchedule() {
  Schedule schedule;
  schedule.groups.push_back({.name = "linear_1",
                             .nodes = {"linear"},
                             .template_name = "library",
                             .precision = LibraryCall::Precision::kTf32});
  schedule.groups.push_back({.name = "softmax",
                             .nodes = {"mul", "softmax"},
                             .template_name = "row",
                             .knobs = {{"block", 256}, {"vector", 4}}});
  schedule.has_capture = true;
  schedule.tune["softmax.block"] = {128, 256};
  return schedule;
}

TEST_CASE("ParseSchedule reads what ToText wrote", "[schedule]") {
  const Schedule schedule = MakeSchedule();

  const absl::StatusOr<Schedule> parsed = ParseSchedule(ToText(schedule));

  REQUIRE(parsed.ok());
  CHECK(*parsed == schedule);
  CHECK(DigestOf(*parsed) == DigestOf(schedule));
}

TEST_CASE("Schedule text has one readable line per group", "[schedule]") {
  CHECK(ToText(MakeSchedule()) ==
        "group linear_1 template=library nodes=linear precision=tf32\n"
        "group softmax template=row nodes=mul,softmax block=256 vector=4\n"
        "tune softmax.block=128,256\n"
        "capture\n");
}

TEST_CASE("Rewrites come first in a schedule, in their order", "[schedule]") {
  Schedule schedule = MakeSchedule();
  schedule.rewrites = {{"reduce_first", "mean"}, {"one_element", "mean_2"}};

  const std::string text = ToText(schedule);

  CHECK(
      text.starts_with("rewrite reduce_first node=mean\nrewrite one_element node=mean_2\ngroup "));
  REQUIRE(ParseSchedule(text).ok());
  CHECK(*ParseSchedule(text) == schedule);
}

TEST_CASE("ParseSchedule refuses a malformed text", "[schedule]") {
  const std::string text = GENERATE(
      as<std::string>{}, "grup a template=t nodes=b", "group", "group a",
      "group 1 template=t nodes=b", "group a template=t nodes=", "group a template=t nodes=b,b",
      "group a nodes=b", "group a template= nodes=b", "group a template=two,names nodes=b",
      "group a template=t nodes=b block", "group a template=t nodes=b block=x",
      "group a template=t nodes=b block=", "group a template=t nodes=b =1",
      "group a template=t nodes=b block=9223372036854775808",
      "group a template=t nodes=b block=1 block=2", "group a template=t nodes=b nodes=c",
      "group a template=t nodes=b precision=tf32 precision=ieee",
      "group a template=t nodes=b precision=half",
      "group a template=t nodes=b\ngroup a template=t nodes=c",
      "group a template=t nodes=b\ngroup c template=t nodes=b", "tune", "tune a.block",
      "tune a.block=1", "group a template=t nodes=b\ntune a=1",
      "group a template=t nodes=b\ntune a.block.x=1",
      "group a template=t nodes=b\ntune a.block=", "group a template=t nodes=b\ntune a.block=1,1",
      "group a template=t nodes=b\ntune a.block=1\ntune a.block=2", "capture now", "rewrite",
      "rewrite reduce_first", "rewrite reduce_first mean", "rewrite reduce_first nodes=mean",
      "rewrite reduce_first node=", "rewrite 1 node=mean", "rewrite reduce_first node=a,b",
      "rewrite reduce_first node=mean block=1");
  CAPTURE(text);

  CHECK(ParseSchedule(text).status().code() == absl::StatusCode::kInvalidArgument);
}

// One group too many, and then a line that names none.
TEST_CASE("ParseSchedule bounds what a text may hold", "[schedule]") {
  std::string groups;
  for (int i = 0; i < 4096; ++i)
    groups += "group g" + std::to_string(i) + " template=t nodes=n" + std::to_string(i) + "\n";
  REQUIRE(ParseSchedule(groups).ok());

  CHECK(ParseSchedule(groups + "group\n").status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(ParseSchedule(std::string(size_t{1} << 21, ' ')).status().code() ==
        absl::StatusCode::kInvalidArgument);
}

TEST_CASE("Schedules that differ in one knob have different digests", "[schedule]") {
  Schedule other = MakeSchedule();
  other.groups[1].knobs["vector"] = 2;

  CHECK(DigestOf(other) != DigestOf(MakeSchedule()));
}

}  // namespace
}  // namespace mtmc::kernel
