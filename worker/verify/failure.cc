// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/failure.h"

#include <utility>

namespace mtmc::worker {

v1::Failure MakeFailure(v1::Failure::Kind kind, v1::Stage stage, std::string message,
                        std::string diagnostics) {
  v1::Failure failure;
  failure.set_kind(kind);
  failure.set_stage(stage);
  failure.set_message(std::move(message));
  failure.set_diagnostics(std::move(diagnostics));
  return failure;
}

}  // namespace mtmc::worker
