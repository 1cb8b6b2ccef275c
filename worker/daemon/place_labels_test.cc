// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/place_labels.h"

#include <catch2/catch.hpp>

namespace mtmc::worker {
namespace {

using Variables = std::map<std::string, std::string>;

Variables LabelsOf(const Variables& variables) {
  return PlaceLabels([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

}  // namespace

TEST_CASE("A worker tells its job of Slurm, or its pod, and nothing on a plain host", "[worker]") {
  CHECK(LabelsOf({{"HOME", "/root"}, {"MTMC_POD", ""}}).empty());
  CHECK(LabelsOf({{"SLURM_JOB_ID", "17"},
                  {"SLURM_ARRAY_JOB_ID", "14"},
                  {"SLURM_ARRAY_TASK_ID", "3"},
                  {"SLURMD_NODENAME", "gpu1"}}) == Variables{{"slurm.job", "17"},
                                                             {"slurm.array_job", "14"},
                                                             {"slurm.array_task", "3"},
                                                             {"slurm.node", "gpu1"}});
  CHECK(LabelsOf({{"MTMC_POD", "mtmc-worker-h100-7d4f"}, {"MTMC_POD_NODE", "node3"}}) ==
        Variables{{"kubernetes.pod", "mtmc-worker-h100-7d4f"}, {"kubernetes.node", "node3"}});
}

}  // namespace mtmc::worker
