// SPDX-License-Identifier: Apache-2.0
#include "common/fleet/worker_demand.h"

#include <catch2/catch.hpp>
#include <functional>

namespace mtmc::fleet {
namespace {

using Change = std::function<void(v1::Worker&)>;

v1::Worker Worker(const std::string& name, const Change& change = {}) {
  v1::Worker worker;
  worker.set_name("workers/" + name);
  worker.set_state(v1::Worker::STATE_IDLE);
  worker.set_isolation_level(v1::ISOLATION_RESTRICTED);
  worker.mutable_device()->set_product("cpu");
  worker.mutable_device()->set_driver_version("3.1");
  worker.mutable_device()->set_toolchain_version("clang 14");
  worker.mutable_device()->add_dialects(v1::DIALECT_OPENCL);
  if (change) change(worker);
  return worker;
}

v1::Worker InState(const std::string& name, v1::Worker::State state) {
  return Worker(name, [&](v1::Worker& worker) { worker.set_state(state); });
}

}  // namespace

TEST_CASE("A worker meets what it has at least", "[fleet]") {
  const auto [asked, is_met] = GENERATE(table<v1::Isolation, bool>({
      {v1::ISOLATION_UNSPECIFIED, true},
      {v1::ISOLATION_PROCESS, true},
      {v1::ISOLATION_RESTRICTED, true},
      {v1::ISOLATION_CONFINED, false},
  }));
  CAPTURE(asked);

  CHECK(Meets(Worker("w"), {.min_isolation = asked}) == is_met);
}

TEST_CASE("A worker that does not tell its isolation meets no demand for any", "[fleet]") {
  const v1::Worker silent = Worker("w", [](v1::Worker& w) { w.clear_isolation_level(); });

  CHECK(Meets(silent, {}));
  CHECK_FALSE(Meets(silent, {.min_isolation = v1::ISOLATION_PROCESS}));
}

TEST_CASE("A job demands what it was created with, and the device it began on", "[fleet]") {
  v1::Job job;
  job.mutable_worker_selector()->set_worker("workers/w");
  job.set_dialect(v1::DIALECT_OPENCL);
  job.mutable_evaluation()->set_min_isolation(v1::ISOLATION_CONFINED);
  const WorkerDemand before = DemandOf(job);
  *job.mutable_device() = Worker("w").device();
  const WorkerDemand after = DemandOf(job);

  CHECK(before.selector.worker() == "workers/w");
  CHECK(before.dialect == v1::DIALECT_OPENCL);
  CHECK(before.min_isolation == v1::ISOLATION_CONFINED);
  CHECK_FALSE(before.device);
  CHECK(after.device->product() == "cpu");
}

TEST_CASE("Only a device of the same class goes on with a job", "[fleet]") {
  const WorkerDemand demand{.device = Worker("w").device()};
  const v1::Worker newer =
      Worker("w", [](v1::Worker& w) { w.mutable_device()->set_driver_version("3.2"); });

  CHECK(Meets(Worker("other"), demand));
  CHECK_FALSE(Meets(newer, demand));
  CHECK(WhyNoneServes(demand, {newer}) ==
        "no worker with the device that the job began on, cpu (driver 3.1, toolchain clang 14), is "
        "there; workers have cpu (driver 3.2, toolchain clang 14); see mtmc workers list");
}

TEST_CASE("A wait is explained by what is demanded and what workers have", "[fleet]") {
  struct Case {
    std::string name;
    WorkerDemand demand;
    std::string why;
  };

  v1::WorkerSelector by_name;
  by_name.set_worker("workers/z");
  v1::WorkerSelector by_product;
  by_product.set_product("NVIDIA H200");
  const auto c = GENERATE_COPY(values<Case>({
      {"name", {.selector = by_name}, "no worker called z is there; workers are a, b"},
      {"product",
       {.selector = by_product},
       "no worker with the device NVIDIA H200 is there; workers have cpu"},
      {"dialect",
       {.dialect = v1::DIALECT_CUDA},
       "no worker with the dialect cuda is there; workers have opencl"},
      {"isolation",
       {.min_isolation = v1::ISOLATION_CONFINED},
       "no worker with isolation confined is there; workers have process, restricted; see mtmc "
       "doctor"},
  }));
  INFO(c.name);
  const v1::Worker lower =
      Worker("b", [](v1::Worker& w) { w.set_isolation_level(v1::ISOLATION_PROCESS); });

  CHECK_THAT(WhyNoneServes(c.demand, {Worker("a"), lower}), Catch::StartsWith(c.why));
}

TEST_CASE("A wait is explained by those workers alone that meet the rest", "[fleet]") {
  const v1::Worker confined_cpu =
      Worker("cpu", [](v1::Worker& w) { w.set_isolation_level(v1::ISOLATION_CONFINED); });
  const v1::Worker gpu = Worker("gpu", [](v1::Worker& w) {
    w.mutable_device()->set_dialects(0, v1::DIALECT_CUDA);
    w.set_isolation_level(v1::ISOLATION_PROCESS);
  });

  const std::string why = WhyNoneServes(
      {.dialect = v1::DIALECT_CUDA, .min_isolation = v1::ISOLATION_CONFINED}, {confined_cpu, gpu});

  CHECK_THAT(why, Catch::Contains("workers have process;"));
}

TEST_CASE("Workers that are lost are not there", "[fleet]") {
  CHECK(WhyNoneServes({}, {InState("w", v1::Worker::STATE_LOST)}) ==
        "no worker is connected; start one with mtmc up or mtmc-worker");
}

TEST_CASE("A wait for workers that take no work names their states", "[fleet]") {
  v1::Worker sick = InState("b", v1::Worker::STATE_QUARANTINED);
  sick.set_quarantine_reason("XID 79");

  CHECK(WhyNoneServes({}, {InState("a", v1::Worker::STATE_DRAINING), sick}) ==
        "no worker that fits takes work; a is draining, b is quarantined: XID 79; see mtmc workers "
        "list");
}

TEST_CASE("A busy worker that fits leaves nothing to explain", "[fleet]") {
  CHECK(WhyNoneServes(
            {.min_isolation = v1::ISOLATION_RESTRICTED},
            {InState("a", v1::Worker::STATE_DRAINING), InState("b", v1::Worker::STATE_RUNNING)})
            .empty());
}

}  // namespace mtmc::fleet
