// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/search_state_proto.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/data_type.h"
#include "common/base/enum_word.h"
#include "mtmc/v1/policy.pb.h"

namespace mtmc::policy {
namespace {

absl::string_view DataTypeName(v1::DataType type) {
  switch (type) {
    case v1::DATA_TYPE_F64:
      return "f64";
    case v1::DATA_TYPE_F32:
      return "f32";
    case v1::DATA_TYPE_F16:
      return "f16";
    case v1::DATA_TYPE_BF16:
      return "bf16";
    case v1::DATA_TYPE_I64:
      return "i64";
    case v1::DATA_TYPE_I32:
      return "i32";
    case v1::DATA_TYPE_I16:
      return "i16";
    case v1::DATA_TYPE_I8:
      return "i8";
    case v1::DATA_TYPE_U8:
      return "u8";
    case v1::DATA_TYPE_BOOL:
      return "bool";
    default:
      return "?";
  }
}

// Sizes come from a peer: a product that would overflow saturates, because it
// only weighs one action against another.
int64_t TensorBytes(const v1::TensorType& type) {
  constexpr double kMost = 1e15;
  auto bytes = static_cast<double>(base::ElementBytes(type.data_type()));
  for (const int64_t extent : type.shape())
    bytes *= static_cast<double>(std::max<int64_t>(0, extent));
  return static_cast<int64_t>(std::min(bytes, kMost));
}

std::string TypeText(const v1::TensorType& type) {
  return absl::StrCat(DataTypeName(type.data_type()), "[", absl::StrJoin(type.shape(), ","), "]");
}

std::string ArgumentText(const v1::GraphArgument& argument) {
  switch (argument.kind_case()) {
    case v1::GraphArgument::kValue:
      return argument.value();
    case v1::GraphArgument::kIntValue:
      return absl::StrCat(argument.int_value());
    case v1::GraphArgument::kFloatValue:
      return absl::StrCat(argument.float_value());
    case v1::GraphArgument::kBoolValue:
      return argument.bool_value() ? "True" : "False";
    case v1::GraphArgument::kStringValue:
      return absl::StrCat("'", argument.string_value(), "'");
    case v1::GraphArgument::kDataType:
      return std::string(DataTypeName(argument.data_type()));
    case v1::GraphArgument::kList:
      // One level: elements of a list are never lists.
      return absl::StrCat("[",
                          absl::StrJoin(argument.list().elements(), ",",
                                        [](std::string* out, const v1::GraphArgument& element) {
                                          if (element.has_list()) return;
                                          out->append(ArgumentText(element));
                                        }),
                          "]");
    case v1::GraphArgument::kNone:
    case v1::GraphArgument::KIND_NOT_SET:
      break;
  }
  return "None";
}

GraphOp OpFromProto(const v1::GraphNode& node) {
  GraphOp op;
  op.name = node.name();
  op.op = node.op();
  op.results.assign(node.results().begin(), node.results().end());
  for (const v1::GraphArgument& argument : node.arguments()) {
    if (argument.has_value()) op.operands.push_back(argument.value());
    for (const v1::GraphArgument& element : argument.list().elements()) {
      if (element.has_value()) op.operands.push_back(element.value());
    }
  }
  for (const v1::TensorType& type : node.result_types()) {
    op.result_bytes += TensorBytes(type);
  }
  const auto append_argument = [](std::string* out, const v1::GraphArgument& argument) {
    out->append(ArgumentText(argument));
  };
  const auto append_type = [](std::string* out, const v1::TensorType& type) {
    out->append(TypeText(type));
  };
  op.listing =
      absl::StrCat(op.name, ": ", absl::StrJoin(node.result_types(), ", ", append_type), " = ",
                   op.op, "(", absl::StrJoin(node.arguments(), ", ", append_argument), ")");
  if (node.line() > 0) absl::StrAppend(&op.listing, "  # line ", node.line());
  return op;
}

DeviceRates DeviceFromProto(const v1::DeviceFacts& device) {
  DeviceRates rates;
  rates.product = device.product();
  rates.is_cuda = std::find(device.dialects().begin(), device.dialects().end(), v1::DIALECT_CUDA) !=
                  device.dialects().end();
  rates.has_library_calls = device.has_library_calls();
  rates.compute_units = device.compute_units();
  rates.bytes_per_second = device.memory_bandwidth_bytes_per_second();
  rates.fp32_flops_per_second = device.fp32_flops_per_second();
  rates.tf32_flops_per_second = device.tf32_flops_per_second();
  return rates;
}

ActionType RepairOf(v1::Failure::Kind kind) {
  switch (kind) {
    case v1::Failure::KIND_PARSE:
    case v1::Failure::KIND_CHECK:
    case v1::Failure::KIND_COMPILE:
      return ActionType::kFixBuild;
    case v1::Failure::KIND_WRONG_RESULT:
    case v1::Failure::KIND_NONDETERMINISTIC:
    case v1::Failure::KIND_CHEAT:
      return ActionType::kFixResult;
    default:
      return ActionType::kFixLaunch;
  }
}

EvaluationSummary EvaluationFromProto(const v1::Evaluation& evaluation) {
  EvaluationSummary summary;
  if (evaluation.has_failure()) {
    summary.repair = RepairOf(evaluation.failure().kind());
    summary.failure = evaluation.failure().message();
  }
  if (evaluation.measurement().median_seconds() > 0) {
    summary.median_seconds = evaluation.measurement().median_seconds();
  }
  if (evaluation.comparisons_size() > 0 && evaluation.comparisons(0).speedup() > 0) {
    summary.speedup = evaluation.comparisons(0).speedup();
  }
  const v1::Profile& profile = evaluation.profile();
  if (profile.limit() != v1::Profile::LIMIT_UNSPECIFIED) {
    summary.limit = base::EnumWord(v1::Profile::Limit_Name(profile.limit()), "LIMIT_");
  }
  summary.profile_text = profile.summary();
  summary.metrics = {profile.metrics().begin(), profile.metrics().end()};
  if (profile.speed_of_light_ratio() > 0) {
    summary.speed_of_light_ratio = profile.speed_of_light_ratio();
  }
  for (const v1::KernelActivity& activity : profile.kernels()) {
    summary.kernels.push_back({.kernel = activity.kernel(),
                               .seconds = activity.seconds(),
                               .share_ratio = activity.share_ratio(),
                               .blocks = activity.blocks(),
                               .metrics = {activity.metrics().begin(), activity.metrics().end()}});
  }
  return summary;
}

PrecisionClass PrecisionFromProto(v1::Precision precision) {
  switch (precision) {
    case v1::PRECISION_STRICT:
      return PrecisionClass::kStrict;
    case v1::PRECISION_TF32:
      return PrecisionClass::kTf32;
    case v1::PRECISION_HALF:
      return PrecisionClass::kHalf;
    default:
      return PrecisionClass::kKernelBench;
  }
}

}  // namespace

absl::StatusOr<Action> FromProto(const v1::Action& action) {
  if (action.type() <= v1::Action::TYPE_UNSPECIFIED || action.type() > v1::Action::TYPE_STOP) {
    return absl::InvalidArgumentError(
        absl::StrCat("action \"", action.text(), "\" has type ", static_cast<int>(action.type()),
                     ", must be 1 to ", static_cast<int>(v1::Action::TYPE_STOP)));
  }
  static_assert(static_cast<int>(ActionType::kStop) + 1 == static_cast<int>(v1::Action::TYPE_STOP));
  Action result;
  result.type = static_cast<ActionType>(action.type() - 1);
  result.kernels.assign(action.region().kernels().begin(), action.region().kernels().end());
  result.nodes.assign(action.region().nodes().begin(), action.region().nodes().end());
  result.arguments.insert(action.arguments().begin(), action.arguments().end());
  result.text = action.text();
  return result;
}

SearchState FromProto(const v1::SearchState& search_state) {
  SearchState result;
  for (const v1::GraphInput& input : search_state.graph().inputs()) {
    result.signature.push_back(absl::StrCat("input ", input.name(), ": ", TypeText(input.type())));
  }
  for (const v1::GraphOutput& output : search_state.graph().outputs()) {
    result.signature.push_back(absl::StrCat("output ", output.name(), ": ", TypeText(output.type()),
                                            " = ", output.value()));
  }
  for (const v1::GraphNode& node : search_state.graph().nodes()) {
    result.ops.push_back(OpFromProto(node));
  }
  result.program = search_state.program().text();
  result.evaluation = EvaluationFromProto(search_state.evaluation());
  result.device = DeviceFromProto(search_state.device());
  for (const v1::SearchState::Step& step : search_state.history()) {
    Step& added = result.history.emplace_back();
    added.action = step.action();
    added.outcome = step.outcome();
    if (step.has_speedup()) added.speedup = step.speedup();
  }
  result.remaining_steps = search_state.remaining_steps();
  result.minimum_bytes = search_state.minimum_bytes();
  result.contraction_flops = search_state.contraction_flops();
  result.precision = PrecisionFromProto(search_state.precision());
  return result;
}

absl::StatusOr<Query> FromProto(const v1::ChooseActionRequest& request) {
  if (request.actions().empty()) {
    return absl::InvalidArgumentError("there is no legal action, must be at least one");
  }
  if (!std::isfinite(request.temperature()) || request.temperature() < 0) {
    return absl::InvalidArgumentError(absl::StrCat("temperature is ", request.temperature(),
                                                   ", must be finite and not negative"));
  }
  Query query;
  for (const v1::Action& action : request.actions()) {
    absl::StatusOr<Action> converted = FromProto(action);
    if (!converted.ok()) return converted.status();
    query.actions.push_back(*std::move(converted));
  }
  query.search_state = FromProto(request.search_state());
  query.temperature = request.temperature();
  switch (request.normalization()) {
    case v1::SCORE_NORMALIZATION_TOKEN_MEAN:
      query.normalization = ScoreNormalization::kTokenMean;
      break;
    case v1::SCORE_NORMALIZATION_WORD_MEAN:
      query.normalization = ScoreNormalization::kWordMean;
      break;
    default:
      query.normalization = ScoreNormalization::kSum;
  }
  return query;
}

v1::ChooseActionResponse ToProto(const Distribution& distribution, int64_t seed) {
  v1::ChooseActionResponse response;
  response.set_chosen(static_cast<int>(Draw(distribution.probabilities, seed)));
  response.mutable_probabilities()->Assign(distribution.probabilities.begin(),
                                           distribution.probabilities.end());
  response.mutable_scores()->Assign(distribution.scores.begin(), distribution.scores.end());
  response.mutable_token_counts()->Assign(distribution.token_counts.begin(),
                                          distribution.token_counts.end());
  return response;
}

}  // namespace mtmc::policy
