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

v1::Evaluation::Verdict VerdictOf(v1::Failure::Kind kind) {
  switch (kind) {
    case v1::Failure::KIND_WRONG_RESULT:
      return v1::Evaluation::VERDICT_WRONG;
    case v1::Failure::KIND_OUT_OF_BOUNDS:
    case v1::Failure::KIND_INPUT_CHANGED:
    case v1::Failure::KIND_CRASH:
      return v1::Evaluation::VERDICT_UNSAFE;
    case v1::Failure::KIND_NONDETERMINISTIC:
      return v1::Evaluation::VERDICT_NONDETERMINISTIC;
    case v1::Failure::KIND_CHEAT:
      return v1::Evaluation::VERDICT_CHEATED;
    default:
      return v1::Evaluation::VERDICT_UNSPECIFIED;
  }
}

}  // namespace mtmc::worker
