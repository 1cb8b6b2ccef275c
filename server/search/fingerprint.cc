// SPDX-License-Identifier: Apache-2.0
#include "server/search/fingerprint.h"

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/fleet/device_class.h"
#include "server/search/known_step.h"

namespace mtmc::search {
namespace {

// Raised whenever the worker's rules of verification or measurement change in a
// way that makes old verdicts incomparable.
constexpr int kEvaluationRules = 9;

// Each part with its length, so that no two lists of parts read the same.
std::string Join(std::initializer_list<std::string> parts) {
  std::string text;
  for (const std::string& part : parts) absl::StrAppend(&text, part.size(), ":", part, "\n");
  return text;
}

// None of these messages holds a map, so that equal values have equal bytes.
std::string ProblemBytes(v1::Problem problem) {
  problem.clear_display_name();
  return problem.SerializeAsString();
}

std::string OptionsBytes(v1::EvaluationOptions options) {
  options.clear_min_isolation();
  return options.SerializeAsString();
}

}  // namespace

std::string EvaluationFingerprint(const v1::EvaluationRequest& request,
                                  const v1::DeviceFacts& device) {
  return EvaluationFingerprint(
      request, {request.allowed_calls().begin(), request.allowed_calls().end()}, device);
}

std::string EvaluationFingerprint(const v1::EvaluationRequest& request,
                                  const std::vector<std::string>& allowed_calls,
                                  const v1::DeviceFacts& device) {
  std::string calls;
  for (const std::string& call : allowed_calls) absl::StrAppend(&calls, call, " ");
  return base::Sha256(Join({absl::StrCat("evaluation ", kEvaluationRules),
                            request.program().sha256(), ProblemBytes(request.problem()),
                            OptionsBytes(request.options()), calls, fleet::DeviceClass(device)}))
      .sha256_hex;
}

std::string InspectionKey(const v1::InspectionRequest& request, const v1::DeviceFacts& device) {
  std::string baselines;
  for (const int baseline : request.baselines()) absl::StrAppend(&baselines, baseline, " ");
  return base::Sha256(
             Join({absl::StrCat("inspection ", kEvaluationRules), ProblemBytes(request.problem()),
                   baselines, request.limits().SerializeAsString(), fleet::DeviceClass(device)}))
      .sha256_hex;
}

std::string WithinProject(const std::string& project, const std::string& key) {
  return base::Sha256(Join({"project", project, key})).sha256_hex;
}

bool IsAnswer(const v1::EvaluationRequest& request, const v1::Evaluation& evaluation) {
  if (!evaluation.skipped_confirmation() || evaluation.comparisons().empty()) return true;
  // Who was slower there, and is needed here.
  const bool lacks_profile =
      request.needs_profile() && !request.options().omit_profile() && !evaluation.has_profile();
  const bool is_ahead = evaluation.comparisons(0).speedup() > request.speedup_to_beat();
  return !lacks_profile && (request.defers_confirmation() || !is_ahead);
}

bool IsReusable(const v1::EvaluationRequest& request, const v1::Evaluation& evaluation) {
  return IsJudgement(evaluation) && IsAnswer(request, evaluation);
}

}  // namespace mtmc::search
