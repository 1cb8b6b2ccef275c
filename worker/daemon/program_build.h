// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "google/protobuf/repeated_field.h"
#include "kernel/program/program.h"
#include "mtmc/v1/evaluation.pb.h"
#include "mtmc/v1/problem.pb.h"
#include "worker/daemon/evaluation_context.h"
#include "worker/daemon/stage_end.h"

namespace mtmc::worker {

// One setting of a program's `tune` parameters and its binary.
struct BuiltVariant {
  v1::Variant variant;
  std::string binary;
};

// The program in `text`, or a KIND_PARSE failure.
std::variant<kernel::Program, v1::Failure> ParseText(const std::string& text);

// Checks the plan of `program` against the graph and the idle inputs of
// `inspection`, the device's limits and the allowed library calls, for the default
// setting of its parameters. A graph that cannot be read is the worker's trouble.
MaybeEnd CheckPlan(const kernel::Program& program, const v1::Inspection& inspection,
                   const google::protobuf::RepeatedPtrField<std::string>& allowed_calls,
                   const v1::DeviceFacts& device);

// The request for all variants that `options` asks for.
pipe::v1::BuilderRequest BuildRequestOf(const kernel::Program& program, const std::string& text,
                                        const v1::EvaluationOptions& options,
                                        const EvaluationContext::Options& context);

// Those that compiled, or why the default one did not.
using BuiltVariants = std::variant<std::vector<BuiltVariant>, v1::Failure>;

// Compiles; the default variant is first and others that do not compile are left
// out. The default one must.
BuiltVariants BuildVariants(BuilderParty& builder, const pipe::v1::BuilderRequest& request,
                            absl::Duration timeout);

}  // namespace mtmc::worker
