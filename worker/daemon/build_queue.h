// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>

#include "absl/time/time.h"
#include "common/base/executor.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "worker/daemon/program_build.h"

namespace mtmc::worker {

// BuildVariants that the caller does not wait for at once: one after the other, on a thread of
// their own. Thread-compatible.
class BuildQueue {
 public:
  using Answer = std::future<BuiltVariants>;

  // Borrows `builder`, which is called from another thread. The destructor waits for all builds.
  explicit BuildQueue(BuilderParty& builder);

  Answer Build(pipe::v1::BuilderRequest request, absl::Duration timeout);

  // Whether to wait for a valid answer would take no time.
  static bool IsReady(const Answer& answer);

 private:
  BuilderParty& builder_;
  base::Executor executor_;
};

}  // namespace mtmc::worker
