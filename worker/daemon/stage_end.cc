// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/stage_end.h"

#include <utility>

namespace mtmc::worker {

StageEnd WorkerTrouble(std::string reason, std::string message) {
  v1::WorkerFailure failure;
  failure.set_reason(std::move(reason));
  failure.set_message(std::move(message));
  return failure;
}

StageEnd WorkerTrouble(const ReferenceTrouble& trouble) {
  return WorkerTrouble(trouble.reason, trouble.message);
}

}  // namespace mtmc::worker
