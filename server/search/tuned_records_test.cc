// SPDX-License-Identifier: Apache-2.0
#include "server/search/tuned_records.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "kernel/graph/graph_proto.h"
#include "server/search/record_key.h"
#include "server/search/timed_candidate.h"

namespace mtmc::search {
namespace {

using Kernels = std::vector<std::pair<std::string, double>>;

kernel::GraphArgument ValueOf(const std::string& name, const std::string& value) {
  return {.name = name, .value = kernel::ValueArgument{value}};
}

// `relu(x @ w)` as often as `widths` says, with names that begin with `prefix`.
v1::Graph Chain(const std::vector<int64_t>& widths, const std::string& prefix) {
  using Kind = kernel::GraphInput::Kind;
  kernel::Graph graph;
  int64_t columns = widths[0];
  std::string last = prefix + "x";
  graph.inputs = {{.name = last, .kind = Kind::kUserInput, .type = {.shape = {64, columns}}}};
  for (size_t i = 0; i < widths.size(); ++i) {
    const std::string weight = absl::StrCat(prefix, "w", i);
    const std::string product = absl::StrCat(prefix, "mm", i);
    const std::string act = absl::StrCat(prefix, "act", i);
    const kernel::TensorType type{.shape = {64, widths[i]}};
    graph.inputs.push_back({.name = weight,
                            .kind = Kind::kParameter,
                            .type = {.shape = {columns, widths[i]}},
                            .target = weight});
    graph.nodes.push_back({product,
                           "aten::matmul.default",
                           {ValueOf("self", last), ValueOf("other", weight)},
                           {product},
                           {type}});
    graph.nodes.push_back({act, "aten::relu.default", {ValueOf("self", product)}, {act}, {type}});
    last = act;
    columns = widths[i];
  }
  graph.outputs = {{.name = "y", .value = last, .type = {.shape = {64, columns}}}};
  return kernel::ToProto(graph);
}

v1::Job JobOf(const v1::Graph& graph, const std::string& product = "H200") {
  v1::Job job;
  job.set_name("projects/p/jobs/j");
  job.set_dialect(v1::DIALECT_CUDA);
  job.mutable_device()->set_product(product);
  job.mutable_search()->set_allow_library(true);
  *job.mutable_inspection()->mutable_graph() = graph;
  return job;
}

// A library call for each product and a kernel for each activation.
std::string Calls(const std::string& prefix, int layers) {
  std::string schedule;
  for (int i = 0; i < layers; ++i) {
    absl::StrAppend(&schedule, "group ", prefix, "mm", i, " template=library nodes=", prefix, "mm",
                    i, "\ngroup ", prefix, "act", i, " template=pointwise nodes=", prefix, "act", i,
                    "\n");
  }
  return schedule;
}

// Two layers, of which the second is faster as one kernel of our own.
Lineage Learned() {
  Lineage lineage;
  lineage.Put(TimedCandidate(0, Calls("a", 2),
                             {{"aten::mm", 4}, {"aact0", 2}, {"aten::mm", 4}, {"aact1", 2}}));
  lineage.Put(TimedCandidate(1,
                             "group amm0 template=library nodes=amm0\n"
                             "group aact0 template=pointwise nodes=aact0\n"
                             "group k template=contraction nodes=amm1,aact1 bm=64\n"
                             "tune k.bn=32,64\n",
                             {{"aten::mm", 4}, {"aact0", 2}, {"k", 3}}));
  return lineage;
}

v1::Candidate StartOf(const std::string& schedule) {
  v1::Candidate start;
  start.set_schedule(schedule);
  return start;
}

std::string RecalledBy(const v1::Job& job, const std::string& start,
                       const std::vector<v1::TunedRecord>& records) {
  const auto recalled = Recall(job, StartOf(start)).Step(records);
  return recalled ? recalled->arguments().at("schedule") : "none";
}

TEST_CASE("What is learned is what was faster than the start, without names", "[search]") {
  const auto records = LearnRecords(JobOf(Chain({32, 48}, "a")), Learned());
  REQUIRE(records.size() == 1);
  const v1::TunedRecord& record = records.front();
  CHECK(record.schedule() ==
        "group k template=contraction nodes=n0,n1 bm=64\n"
        "tune k.bn=32,64\n");
  CHECK(record.seconds() == 3);
  CHECK(record.start_seconds() == 6);
  CHECK(record.start_groups_size() == 2);
  CHECK(record.start_groups(1).offset() == 1);
  CHECK(record.device_class().product() == "H200");
  CHECK(record.name() == RecordName("projects/p", record));
  CHECK(record.task().find("amm1") == std::string::npos);
  CHECK_THAT(CheckRecord(record), testing::IsOk());
}

TEST_CASE("The same kernels on a better day are nothing learned", "[search]") {
  Lineage lineage;
  const Kernels slow = {{"aten::mm", 4}, {"aact0", 2}, {"aten::mm", 4}, {"aact1", 2}};
  const Kernels fast = {{"aten::mm", 1}, {"aact0", 1}, {"aten::mm", 1}, {"aact1", 1}};
  lineage.Put(TimedCandidate(0, Calls("a", 2), slow));
  lineage.Put(TimedCandidate(1, Calls("a", 2), fast));
  CHECK(LearnRecords(JobOf(Chain({32, 48}, "a")), lineage).empty());
}

TEST_CASE("A part of another network that computes the same takes what was learned", "[search]") {
  const auto records = LearnRecords(JobOf(Chain({32, 48}, "a")), Learned());
  // Its second and third layer are as that of the record; the first and the last are not.
  CHECK(RecalledBy(JobOf(Chain({32, 48, 32, 48, 16}, "b")), Calls("b", 5), records) ==
        "group bmm0 template=library nodes=bmm0\n"
        "group bact0 template=pointwise nodes=bact0\n"
        "group bmm2 template=library nodes=bmm2\n"
        "group bact2 template=pointwise nodes=bact2\n"
        "group bmm4 template=library nodes=bmm4\n"
        "group bact4 template=pointwise nodes=bact4\n"
        "group k template=contraction nodes=bmm1,bact1 bm=64\n"
        "group k_2 template=contraction nodes=bmm3,bact3 bm=64\n"
        "tune k.bn=32,64\n"
        "tune k_2.bn=32,64\n");
}

TEST_CASE("Records are found by the anchors of a start, on the same kind of device", "[search]") {
  const auto job = JobOf(Chain({32, 48}, "a"));
  const auto record = LearnRecords(job, Learned()).front();
  const auto has_anchor = [&](const v1::Job& other) {
    const auto anchors = Recall(other, StartOf(Calls("b", 2))).Anchors();
    return std::find(anchors.begin(), anchors.end(), RecordAnchor(record)) != anchors.end();
  };
  CHECK(has_anchor(JobOf(Chain({32, 48}, "b"))));
  CHECK_FALSE(has_anchor(JobOf(Chain({32, 64}, "b"))));
  CHECK_FALSE(has_anchor(JobOf(Chain({32, 48}, "b"), "H100")));
  v1::Job precise = JobOf(Chain({32, 48}, "b"));
  precise.mutable_problem()->set_precision(v1::PRECISION_STRICT);
  CHECK_FALSE(has_anchor(precise));
  CHECK(Recall(job, StartOf("")).Anchors().empty());
}

TEST_CASE("Parts that compute something else, or begin as other groups, stay", "[search]") {
  const auto records = LearnRecords(JobOf(Chain({32, 48}, "a")), Learned());
  CHECK(RecalledBy(JobOf(Chain({32, 64}, "b")), Calls("b", 2), records) == "none");
  const std::string joined =
      "group bmm0 template=contraction nodes=bmm0,bact0\n"
      "group bmm1 template=contraction nodes=bmm1,bact1\n";
  CHECK(RecalledBy(JobOf(Chain({32, 48}, "b")), joined, records) == "none");
}

TEST_CASE("Of two records for one group the one that saves more is taken", "[search]") {
  const auto job = JobOf(Chain({32, 48}, "a"));
  std::vector<v1::TunedRecord> records = LearnRecords(job, Learned());
  v1::TunedRecord alone = records.front();
  alone.mutable_start_groups()->RemoveLast();
  alone.set_task(alone.start_groups(0).task());
  alone.set_schedule("group own template=contraction nodes=n0\n");
  alone.set_name("projects/p/records/alone");
  alone.set_start_seconds(30);
  records.push_back(alone);
  CHECK(RecalledBy(job, Calls("a", 2), records).find("group own") != std::string::npos);
  records.back().set_start_seconds(4);
  CHECK(RecalledBy(job, Calls("a", 2), records).find("group own") == std::string::npos);
}

TEST_CASE("Calls are not recalled where the job forbids them", "[search]") {
  auto job = JobOf(Chain({32, 48}, "a"));
  std::vector<v1::TunedRecord> records = LearnRecords(job, Learned());
  records.front().set_schedule(
      "group c template=library nodes=n0\ngroup d template=pointwise nodes=n1\n");
  CHECK(RecalledBy(job, Calls("a", 2), records) != "none");
  job.mutable_search()->set_allow_library(false);
  CHECK(RecalledBy(job, Calls("a", 2), records) == "none");
}

TEST_CASE("Records of a program that is wrong or no faster are refuted", "[search]") {
  const auto job = JobOf(Chain({32, 48}, "a"));
  Lineage lineage = Learned();
  const auto record = LearnRecords(job, lineage).front();
  v1::Candidate recalled =
      TimedCandidate(2, Calls("a", 2), {{"aten::mm", 1}, {"aact0", 1}, {"k", 1}});
  *recalled.mutable_action() = *Recall(job, lineage.candidates[0]).Step({record});
  const auto refuted = [&](const v1::Candidate& candidate) {
    lineage.Put(candidate);
    return RefutedRecords(lineage) == std::vector<std::string>{record.name()};
  };
  CHECK_FALSE(refuted(recalled));
  v1::Candidate slow = recalled;
  slow.mutable_evaluation()->mutable_comparisons(0)->set_speedup(0.01);
  CHECK(refuted(slow));
  v1::Candidate wrong = recalled;
  wrong.mutable_evaluation()->set_verdict(v1::Evaluation::VERDICT_WRONG);
  wrong.mutable_evaluation()->mutable_failure()->set_kind(v1::Failure::KIND_WRONG_RESULT);
  CHECK(refuted(wrong));
  wrong.mutable_evaluation()->clear_verdict();
  wrong.mutable_evaluation()->mutable_failure()->set_kind(v1::Failure::KIND_TIMEOUT);
  CHECK_FALSE(refuted(wrong));
  wrong.set_state(v1::Candidate::STATE_REJECTED);
  CHECK(refuted(wrong));
}

TEST_CASE("A record that is not complete is refused with what is wrong", "[search]") {
  const auto whole = LearnRecords(JobOf(Chain({32, 48}, "a")), Learned()).front();
  const auto fault = [&](const std::function<void(v1::TunedRecord&)>& change) {
    v1::TunedRecord record = whole;
    change(record);
    const absl::Status status = CheckRecord(record);
    CHECK(rpc::ErrorReason(status) == "INVALID_RECORD");
    return std::string(status.message());
  };
  using Record = v1::TunedRecord;
  CHECK(fault([](Record& r) { r.clear_device_class(); }) ==
        "the record names no device; export it anew");
  fault([](Record& r) { r.clear_dialect(); });
  fault([](Record& r) { r.clear_task(); });
  fault([](Record& r) { r.clear_start_groups(); });
  fault([](Record& r) { r.mutable_start_groups(1)->set_offset(0); });
  fault([](Record& r) { r.set_seconds(0); });
  fault([](Record& r) { r.set_start_seconds(std::numeric_limits<double>::quiet_NaN()); });
  fault([](Record& r) { r.set_schedule("group"); });
  CHECK(fault([](Record& r) { r.set_schedule("group k template=pointwise nodes=n0\n"); }) ==
        "the record lacks node `n1`; export it anew");
  fault([](Record& r) { r.set_schedule("group k template=pointwise nodes=n0,n1,n2\n"); });
}

}  // namespace
}  // namespace mtmc::search
