// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/gateway/micro_coder.h"

namespace mtmc::gateway {

// The built-in engine (`kernel/engine`) as a coder: deterministic, free,
// milliseconds, never blocks. Works on programs with a schedule only; a program
// without one gets UNSUPPORTED, and `stop` as its only action. After a failed
// evaluation the engine's other starts are offered as the repair.
class BuiltinCoder final : public MicroCoder {
 public:
  std::string name() const override { return "builtin"; }

  std::string description() const override { return "built-in engine: deterministic, no tokens"; }

  absl::StatusOr<CodingResult> CreateProgram(const CodingTask& task) override;
  absl::StatusOr<CodingResult> ApplyAction(const CodingTask& task, const CodedProgram& program,
                                           const CodingAction& action,
                                           const Feedback& feedback) override;
  absl::StatusOr<std::vector<CodingAction>> ListActions(const CodingTask& task,
                                                        const CodedProgram& program,
                                                        const Feedback& feedback) override;
};

}  // namespace mtmc::gateway
