// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/program_build.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernel/graph/graph_proto.h"
#include "kernel/program/checker.h"
#include "kernel/program/interface.h"
#include "kernel/program/parser.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "worker/verify/failure.h"

namespace mtmc::worker {
namespace {

// Eight by eight: two parameters of a GEMM's tile with all that make sense.
constexpr int kDefaultVariants = 64;

// The failure that a builder's reply stands for; absent when it built the
// default variant.
std::optional<v1::Failure> FailureOfBuild(const Reply<pipe::v1::BuilderResponse>& reply) {
  using Ending = Reply<pipe::v1::BuilderResponse>::Ending;
  auto fail = [&](v1::Failure::Kind kind, std::string message) {
    return MakeFailure(kind, v1::STAGE_BUILD, std::move(message), reply.detail);
  };
  switch (reply.ending) {
    case Ending::kAnswered:
      if (reply.response.built().empty()) break;
      if (!reply.response.built(0).has_failure()) return std::nullopt;
      return reply.response.built(0).failure();
    case Ending::kTimedOut:
      return fail(v1::Failure::KIND_TIMEOUT, "the compiler did not finish in time");
    case Ending::kCancelled:
      return fail(v1::Failure::KIND_TIMEOUT, "the build was called off");
    case Ending::kOutOfMemory:
      return fail(v1::Failure::KIND_OUT_OF_MEMORY, "the compiler took more memory than it may");
    case Ending::kKilled:
    case Ending::kUnavailable:
      return fail(v1::Failure::KIND_UNSPECIFIED, "the builder process is not there");
    case Ending::kDied:
      break;
  }
  return fail(v1::Failure::KIND_CRASH, "the compiler crashed on this source");
}

}  // namespace

std::variant<kernel::Program, v1::Failure> ParseText(const std::string& text) {
  kernel::ParseResult parsed = kernel::ParseProgram(text);
  if (parsed.program) return *std::move(parsed.program);
  return MakeFailure(v1::Failure::KIND_PARSE, v1::STAGE_BUILD, "the text is not a program",
                     ToText(parsed.diagnostics));
}

MaybeEnd CheckPlan(const kernel::Program& program, const v1::Inspection& inspection,
                   const google::protobuf::RepeatedPtrField<std::string>& allowed_calls,
                   const v1::DeviceFacts& device) {
  const auto read = kernel::FromProto(inspection.graph());
  if (!read.ok()) return WorkerTrouble("BAD_GRAPH", std::string(read.status().message()));
  const kernel::CheckLimits limits{.max_threads_per_block = device.max_threads_per_block(),
                                   .max_shared_bytes = device.shared_memory_per_block_bytes(),
                                   .max_buffer_bytes = device.memory_bytes(),
                                   .allowed_calls = {allowed_calls.begin(), allowed_calls.end()}};
  const std::set<std::string> idle(inspection.idle_inputs().begin(),
                                   inspection.idle_inputs().end());
  const auto diagnostics = kernel::CheckProgram(program, kernel::FromGraph(*read, idle), limits,
                                                kernel::DefaultBindings(program));
  if (diagnostics.empty()) return std::nullopt;
  return MakeFailure(v1::Failure::KIND_CHECK, v1::STAGE_BUILD,
                     absl::StrCat("the plan is not sound: ", diagnostics.front().message),
                     ToText(diagnostics));
}

pipe::v1::BuilderRequest BuildRequestOf(const kernel::Program& program, const std::string& text,
                                        const v1::EvaluationOptions& options,
                                        const EvaluationContext::Options& context) {
  pipe::v1::BuilderRequest request;
  auto& build = *request.mutable_build();
  build.set_program(text);
  *build.mutable_device() = context.device;
  build.set_device_index(context.device_index);
  const int limit = options.max_variants() > 0 ? options.max_variants() : kDefaultVariants;
  for (const auto& bindings : kernel::Variants(program, limit)) {
    build.add_variants()->mutable_parameters()->insert(bindings.begin(), bindings.end());
  }
  return request;
}

BuiltVariants BuildVariants(BuilderParty& builder, const pipe::v1::BuilderRequest& request,
                            absl::Duration timeout) {
  auto reply = builder.Call(request, timeout);
  if (auto failure = FailureOfBuild(reply)) return *std::move(failure);
  std::vector<BuiltVariant> variants;
  for (auto& built : *reply.response.mutable_built()) {
    if (built.has_failure()) continue;
    variants.push_back({std::move(*built.mutable_variant()), std::move(*built.mutable_binary())});
  }
  return variants;
}

}  // namespace mtmc::worker
