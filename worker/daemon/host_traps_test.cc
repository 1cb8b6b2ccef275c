// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/host_traps.h"

#include <catch2/catch.hpp>
#include <optional>
#include <string>

namespace mtmc::worker {
namespace {

using State = HostCheck::State;

// A host that has all that a worker wants.
HostFacts GoodHost() {
  HostFacts facts;
  facts.mounts =
      "/dev/sda1 / ext4 rw,relatime 0 0\n"
      "tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0\n";
  facts.memory_bytes = int64_t{64} << 30;
  facts.num_cores = 8;
  facts.max_open_files = 1024;
  return facts;
}

HostFacts HostWithGpus(int count) {
  HostFacts facts = GoodHost();
  facts.num_gpus = count;
  return facts;
}

// The check of that name; one that is there for each trap that was sprung has a remedy.
std::optional<HostCheck> Find(const HostFacts& facts, const std::string& name) {
  for (const HostCheck& check : FindTraps(facts)) {
    CHECK((check.state == State::kPresent) == check.remedy.empty());
    if (check.name == name) return check;
  }
  return std::nullopt;
}

State StateOf(const HostFacts& facts, const std::string& name) {
  const auto check = Find(facts, name);
  REQUIRE(check);
  CAPTURE(check->detail);
  return check->state;
}

}  // namespace

TEST_CASE("A host without a GPU that has enough springs no trap", "[worker]") {
  for (const HostCheck& check : FindTraps(GoodHost())) {
    CAPTURE(check.name, check.detail);
    CHECK(check.state == State::kPresent);
  }
  CHECK_FALSE(Find(GoodHost(), "gpu.visible"));
  CHECK_FALSE(Find(GoodHost(), "libpq"));
}

TEST_CASE("A mount that forbids programs is told by the innermost and last one", "[worker]") {
  const auto [mounts, state] = GENERATE(table<std::string, State>({
      {"tmpfs /dev/shm tmpfs rw,noexec 0 0\n", State::kDegraded},
      {"udev /dev devtmpfs rw,noexec 0 0\n", State::kDegraded},
      {"udev /dev devtmpfs rw,noexec 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n", State::kPresent},
      {"tmpfs /dev/shm tmpfs rw 0 0\nudev /dev devtmpfs rw,noexec 0 0\n", State::kPresent},
      {"tmpfs /dev/shm tmpfs rw,noexec 0 0\ntmpfs /dev/shm tmpfs rw,exec 0 0\n", State::kPresent},
      {"tmpfs /dev/shmem tmpfs rw,noexec 0 0\n", State::kPresent},
  }));
  CAPTURE(mounts);
  HostFacts facts = GoodHost();
  facts.mounts = "/dev/sda1 / ext4 rw 0 0\n" + mounts;

  CHECK(StateOf(facts, "shm.exec") == state);
  CHECK(StateOf(facts, "tmp.exec") == State::kPresent);
}

TEST_CASE("The folder of temporary files is the one that the environment names", "[worker]") {
  HostFacts facts = GoodHost();
  facts.mounts = "/dev/sda1 / ext4 rw 0 0\nlocal /scratch xfs rw,noexec 0 0\n";
  facts.temporary_folder = "/scratch/job";

  CHECK(StateOf(facts, "tmp.exec") == State::kDegraded);
}

TEST_CASE("Variables that hide GPUs are told from those that choose one", "[worker]") {
  const auto [visible, state] = GENERATE(table<std::string, State>({
      {"", State::kMissing},
      {"-1", State::kMissing},
      {"NoDevFiles", State::kMissing},
      {"2", State::kMissing},
      {"0,2", State::kDegraded},
      {"0", State::kPresent},
      {"1,0", State::kPresent},
      {"GPU-3a54b3b1-4bc5-7e3d-7b0e-6b9ff3c6e6d3", State::kPresent},
  }));
  CAPTURE(visible);
  HostFacts facts = HostWithGpus(2);
  facts.visible_gpus = visible;

  CHECK(StateOf(facts, "gpu.visible") == state);
}

TEST_CASE("A job of Slurm without a GPU of its own is told to ask for one", "[worker]") {
  HostFacts facts = HostWithGpus(4);
  CHECK(StateOf(facts, "gpu.visible") == State::kPresent);
  facts.is_slurm_job = true;

  const auto check = Find(facts, "gpu.visible");

  REQUIRE(check);
  CHECK(check->state == State::kDegraded);
  CHECK_THAT(check->remedy, Catch::Contains("--gres=gpu:1"));
}

TEST_CASE("A GPU that others share is told", "[worker]") {
  HostFacts facts = HostWithGpus(1);
  CHECK(StateOf(facts, "gpu.whole") == State::kPresent);
  facts.num_gpu_slices = 2;
  CHECK(StateOf(facts, "gpu.whole") == State::kDegraded);
  facts.visible_gpus = "MIG-41b4a6a2-8a1d-5b3e-b1b1-9a5d2a3f7c10";
  CHECK(StateOf(facts, "gpu.whole") == State::kPresent);
  CHECK(StateOf(facts, "gpu.visible") == State::kPresent);
  facts.has_mps = true;
  CHECK(StateOf(facts, "gpu.whole") == State::kDegraded);
}

TEST_CASE("Limits of a container count where they are below those of the machine", "[worker]") {
  HostFacts facts = GoodHost();
  facts.limits = {.memory_bytes = int64_t{2} << 30, .cores = 0.5};
  facts.max_open_files = 256;

  CHECK(StateOf(facts, "memory") == State::kDegraded);
  CHECK_THAT(Find(facts, "memory")->detail,
             Catch::Contains("2.1 GB, the limit of a control group"));
  CHECK(StateOf(facts, "cores") == State::kDegraded);
  CHECK(StateOf(facts, "open-files") == State::kDegraded);
  facts.limits = {.memory_bytes = int64_t{1} << 40, .cores = 64};
  CHECK(StateOf(facts, "memory") == State::kPresent);
  CHECK_THAT(Find(facts, "cores")->detail, Catch::StartsWith("8 "));
}

TEST_CASE("A library is looked for where a setting wants it", "[worker]") {
  HostFacts facts = GoodHost();
  facts.store = "postgresql://mtmc@db.example/mtmc";
  facts.artifacts = "/shared/artifacts";
  CHECK(StateOf(facts, "libpq") == State::kMissing);
  CHECK_FALSE(Find(facts, "libcurl"));
  facts.has_libpq = true;
  facts.artifacts = "s3://team-blobs/mtmc";

  CHECK(StateOf(facts, "libpq") == State::kPresent);
  CHECK(StateOf(facts, "libcurl") == State::kMissing);
}

}  // namespace mtmc::worker
