// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/coding_proto.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/digest.h"
#include "common/base/enum_word.h"
#include "common/profile/profile_text.h"
#include "common/rpc/error.h"
#include "kernel/graph/graph_proto.h"
#include "kernel/graph/text.h"
#include "mtmc/v1/action.pb.h"
#include "mtmc/v1/device.pb.h"
#include "mtmc/v1/evaluation.pb.h"
#include "mtmc/v1/micro_coding.pb.h"

namespace mtmc::gateway {
namespace {

constexpr std::string_view kTypePrefix = "TYPE_";

absl::Status InvalidContext(const std::string& message) {
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "CODING_CONTEXT_INVALID", message);
}

v1::Digest DigestOfText(const std::string& text) {
  v1::Digest digest;
  digest.set_sha256(base::Sha256(text).sha256_hex);
  digest.set_size_bytes(static_cast<int64_t>(text.size()));
  return digest;
}

absl::StatusOr<kernel::Dialect> DialectOf(v1::Dialect dialect) {
  switch (dialect) {
    case v1::DIALECT_OPENCL:
      return kernel::Dialect::kOpenCl;
    case v1::DIALECT_CUDA:
      return kernel::Dialect::kCuda;
    case v1::DIALECT_TRITON:
      return kernel::Dialect::kTriton;
    default:
      return InvalidContext("the dialect is not set");
  }
}

// `PRECISION_TF32` to `tf32`.
std::string DescribeDevice(const v1::DeviceFacts& facts) {
  std::string text = absl::StrCat("Device: ", facts.product(), "\n");
  const auto add = [&text](const char* name, int64_t value, const char* unit) {
    if (value > 0) absl::StrAppend(&text, name, ": ", value, unit, "\n");
  };
  add("Compute capability (times ten)", facts.compute_capability(), "");
  add("Multiprocessors or cores", facts.compute_units(), "");
  add("Threads in lockstep", facts.warp_size(), "");
  add("Largest block", facts.max_threads_per_block(), " threads");
  add("Shared memory of a block", facts.shared_memory_per_block_bytes(), " bytes");
  add("Last-level cache", facts.cache_bytes(), " bytes");
  add("Preferred access of a thread", facts.vector_bytes(), " bytes");
  const auto rate = [&text](const char* name, double value, const char* unit) {
    if (value > 0) absl::StrAppend(&text, name, ": ", absl::StrFormat("%.3g", value), unit, "\n");
  };
  rate("Measured copy bandwidth", facts.memory_bandwidth_bytes_per_second(), " bytes/s");
  rate("Measured FP32 rate", facts.fp32_flops_per_second(), " operations/s");
  rate("Measured TF32 rate", facts.tf32_flops_per_second(), " operations/s");
  return text;
}

DeviceModel DeviceOf(const v1::DeviceFacts& facts, kernel::Dialect dialect) {
  // Zero means that the worker does not know; the defaults are safe everywhere.
  const DeviceModel defaults;
  const auto known = [](int64_t value, int64_t fallback) { return value > 0 ? value : fallback; };
  return {
      .dialect = dialect,
      .max_threads_per_block = known(facts.max_threads_per_block(), defaults.max_threads_per_block),
      .shared_bytes_per_block =
          known(facts.shared_memory_per_block_bytes(), defaults.shared_bytes_per_block),
      .compute_units = known(facts.compute_units(), defaults.compute_units),
      .warp_size = known(facts.warp_size(), defaults.warp_size),
      .vector_bytes = known(facts.vector_bytes(), defaults.vector_bytes),
      .cache_bytes = known(facts.cache_bytes(), defaults.cache_bytes),
      .text = DescribeDevice(facts)};
}

Feedback::Outcome OutcomeOf(const v1::Evaluation& evaluation) {
  using Outcome = Feedback::Outcome;
  if (evaluation.has_failure()) {
    switch (evaluation.failure().kind()) {
      case v1::Failure::KIND_PARSE:
      case v1::Failure::KIND_CHECK:
      case v1::Failure::KIND_COMPILE:
        return Outcome::kBuildFailed;
      case v1::Failure::KIND_WRONG_RESULT:
      case v1::Failure::KIND_NONDETERMINISTIC:
      case v1::Failure::KIND_CHEAT:
        return Outcome::kWrongResult;
      default:
        return Outcome::kLaunchFailed;
    }
  }
  switch (evaluation.verdict()) {
    case v1::Evaluation::VERDICT_UNSPECIFIED:
      return Outcome::kNone;
    case v1::Evaluation::VERDICT_CORRECT:
      return Outcome::kCorrect;
    case v1::Evaluation::VERDICT_UNSAFE:
      return Outcome::kLaunchFailed;
    default:
      return Outcome::kWrongResult;
  }
}

std::string VerdictText(const v1::Evaluation& evaluation) {
  std::string text;
  if (evaluation.verdict() != v1::Evaluation::VERDICT_UNSPECIFIED) {
    absl::StrAppend(&text, "verdict: ",
                    base::EnumWord(v1::Evaluation::Verdict_Name(evaluation.verdict()), "VERDICT_"),
                    "\n");
  }
  if (evaluation.has_failure()) {
    const v1::Failure& failure = evaluation.failure();
    absl::StrAppend(&text, "failed in ", base::EnumWord(v1::Stage_Name(failure.stage()), "STAGE_"),
                    ": ", failure.message(), "\n", failure.diagnostics());
    if (text.back() != '\n') text += '\n';
  }
  for (const v1::OutputError& error : evaluation.errors()) {
    absl::StrAppend(&text, "output ", error.output(), ": tolerance needed ",
                    absl::StrFormat("%.2g", error.tolerance_needed()), ", allowed ",
                    absl::StrFormat("%.2g", error.tolerance_allowed()), ", worst element ",
                    error.worst_index(), " (", error.workload(), ")\n");
  }
  return text;
}

std::string MeasuredText(const v1::Evaluation& evaluation) {
  std::string text;
  if (evaluation.has_measurement()) {
    absl::StrAppend(&text, "median time: ",
                    absl::StrFormat("%.4g ms", 1e3 * evaluation.measurement().median_seconds()),
                    "\n");
  }
  for (const v1::Comparison& comparison : evaluation.comparisons()) {
    absl::StrAppend(&text, "against ",
                    base::EnumWord(v1::Baseline_Name(comparison.baseline()), "BASELINE_"), ": ",
                    absl::StrFormat("%.2fx", comparison.speedup()), "\n");
  }
  for (const auto& [name, value] : evaluation.tuned()) {
    absl::StrAppend(&text, "best ", name, " = ", value, "\n");
  }
  absl::StrAppend(&text, profile::DescribeProfile(evaluation.profile()));
  return text;
}

}  // namespace

absl::StatusOr<CodingTask> FromProto(const v1::CodingContext& proto) {
  absl::StatusOr<kernel::Graph> graph = kernel::FromProto(proto.graph());
  if (!graph.ok()) return InvalidContext(absl::StrCat("graph: ", graph.status().message()));
  const absl::StatusOr<kernel::Dialect> dialect = DialectOf(proto.dialect());
  if (!dialect.ok()) return dialect.status();
  if (proto.max_tokens() < 0) return InvalidContext("max_tokens is negative");
  const v1::Precision precision = proto.problem().precision() == v1::PRECISION_UNSPECIFIED
                                      ? v1::PRECISION_KERNELBENCH
                                      : proto.problem().precision();
  return CodingTask{
      .graph = *std::move(graph),
      .device = DeviceOf(proto.device(), *dialect),
      .allow_library = proto.allow_library() && proto.device().has_library_calls(),
      .allow_tf32 = precision == v1::PRECISION_TF32 || precision == v1::PRECISION_HALF,
      .precision = base::EnumWord(v1::Precision_Name(precision), "PRECISION_"),
      .model = proto.model(),
      .seed = proto.seed(),
      .max_tokens = proto.max_tokens(),
      .job = proto.job(),
      .creator = proto.creator()};
}

absl::StatusOr<CodingAction> FromProto(const v1::Action& proto) {
  if (proto.type() == v1::Action::TYPE_UNSPECIFIED || !v1::Action::Type_IsValid(proto.type())) {
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "ACTION_INVALID",
                          "the action's type is not set");
  }
  return CodingAction{.type = base::EnumWord(v1::Action::Type_Name(proto.type()), kTypePrefix),
                      .kernels = {proto.region().kernels().begin(), proto.region().kernels().end()},
                      .nodes = {proto.region().nodes().begin(), proto.region().nodes().end()},
                      .first_line = proto.region().first_line(),
                      .last_line = proto.region().last_line(),
                      .arguments = {proto.arguments().begin(), proto.arguments().end()},
                      .text = proto.text()};
}

CodedProgram FromProto(const v1::Program& proto) {
  return {.text = proto.text(), .schedule = proto.schedule()};
}

Feedback FromProto(const v1::Evaluation& proto) {
  return {.outcome = OutcomeOf(proto),
          .text = VerdictText(proto),
          .measured_text = MeasuredText(proto)};
}

v1::Action ToProto(const CodingAction& action) {
  v1::Action proto;
  v1::Action::Type type = v1::Action::TYPE_UNSPECIFIED;
  // A name that is not in the contract stays unspecified, which clients refuse.
  v1::Action::Type_Parse(absl::StrCat("TYPE_", absl::AsciiStrToUpper(action.type)), &type);
  proto.set_type(type);
  const bool has_region = !action.kernels.empty() || !action.nodes.empty() || action.first_line > 0;
  if (has_region) {
    v1::Region& region = *proto.mutable_region();
    for (const std::string& kernel : action.kernels) region.add_kernels(kernel);
    for (const std::string& node : action.nodes) region.add_nodes(node);
    region.set_first_line(action.first_line);
    region.set_last_line(action.last_line);
  }
  proto.mutable_arguments()->insert(action.arguments.begin(), action.arguments.end());
  proto.set_text(action.text);
  return proto;
}

v1::Program ToProto(const CodedProgram& program) {
  v1::Program proto;
  proto.set_text(program.text);
  proto.set_schedule(program.schedule);
  return proto;
}

v1::CoderFailure ToProto(const CoderFailure& failure) {
  v1::CoderFailure proto;
  proto.set_reason(failure.reason);
  proto.set_message(failure.message);
  return proto;
}

v1::TokenUse ToProto(const TokenUse& use, const std::optional<Exchange>& exchange) {
  v1::TokenUse proto;
  proto.set_input_tokens(use.input_tokens);
  proto.set_output_tokens(use.output_tokens);
  proto.set_model(use.model);
  proto.set_prompt_sha256(use.prompt_sha256);
  if (use.cost_micros) proto.set_cost_micros(*use.cost_micros);
  if (exchange && !exchange->prompt.empty())
    *proto.mutable_prompt() = DigestOfText(exchange->prompt);
  if (exchange && !exchange->reply.empty()) *proto.mutable_reply() = DigestOfText(exchange->reply);
  return proto;
}

v1::Exchange ToProto(const Exchange& exchange) {
  v1::Exchange proto;
  proto.set_prompt(exchange.prompt);
  proto.set_reply(exchange.reply);
  return proto;
}

}  // namespace mtmc::gateway
