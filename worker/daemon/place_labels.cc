// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/place_labels.h"

namespace mtmc::worker {
namespace {

struct Label {
  const char* key;
  const char* variable;
};

// SLURM_JOB_ID of an element of an array is a number that `squeue` does not show; the other
// two are what it shows.
constexpr Label kLabels[] = {
    {"slurm.job", "SLURM_JOB_ID"},
    {"slurm.array_job", "SLURM_ARRAY_JOB_ID"},
    {"slurm.array_task", "SLURM_ARRAY_TASK_ID"},
    {"slurm.node", "SLURMD_NODENAME"},
    {"slurm.cluster", "SLURM_CLUSTER_NAME"},
    {"kubernetes.pod", "MTMC_POD"},
    {"kubernetes.namespace", "MTMC_POD_NAMESPACE"},
    {"kubernetes.node", "MTMC_POD_NODE"},
};

}  // namespace

std::map<std::string, std::string> PlaceLabels(
    const std::function<const char*(const char* name)>& variable) {
  std::map<std::string, std::string> labels;
  for (const Label& label : kLabels) {
    const char* value = variable(label.variable);
    if (value != nullptr && *value != '\0') labels[label.key] = value;
  }
  return labels;
}

}  // namespace mtmc::worker
