// SPDX-License-Identifier: Apache-2.0
#include "server/search/fingerprint.h"

#include <catch2/catch.hpp>

namespace mtmc::search {
namespace {

v1::DeviceFacts Device() {
  v1::DeviceFacts device;
  device.set_product("cpu");
  device.set_driver_version("3.1");
  device.set_toolchain_version("clang 14");
  return device;
}

}  // namespace

TEST_CASE("A fingerprint does not depend on the least isolation", "[search]") {
  v1::EvaluationRequest request;
  request.mutable_options()->set_min_samples(20);
  const std::string before = EvaluationFingerprint(request, Device());

  request.mutable_options()->set_min_isolation(v1::ISOLATION_CONFINED);
  const std::string isolated = EvaluationFingerprint(request, Device());
  request.mutable_options()->set_min_samples(21);

  CHECK(isolated == before);
  CHECK(EvaluationFingerprint(request, Device()) != before);
}

TEST_CASE("A fingerprint depends on what the job allows, not on what the request has of it",
          "[search]") {
  v1::EvaluationRequest all;
  all.add_allowed_calls("aten::mm");
  all.add_allowed_calls("aten::relu");
  v1::EvaluationRequest some;
  some.add_allowed_calls("aten::relu");

  CHECK(EvaluationFingerprint(some, {"aten::mm", "aten::relu"}, Device()) ==
        EvaluationFingerprint(all, Device()));
  CHECK(EvaluationFingerprint(some, {}, Device()) != EvaluationFingerprint(all, Device()));
}

TEST_CASE("The key of an inspection does not depend on the least isolation", "[search]") {
  v1::InspectionRequest request;
  request.add_baselines(v1::BASELINE_EAGER);
  const std::string before = InspectionKey(request, Device());

  request.set_min_isolation(v1::ISOLATION_CONFINED);
  const std::string isolated = InspectionKey(request, Device());
  request.add_baselines(v1::BASELINE_COMPILE);

  CHECK(isolated == before);
  CHECK(InspectionKey(request, Device()) != before);
}

TEST_CASE("The same work has another key in each project", "[search]") {
  const std::string key = EvaluationFingerprint({}, Device());

  CHECK(WithinProject("projects/p", key) == WithinProject("projects/p", key));
  CHECK(WithinProject("projects/p", key) != WithinProject("projects/q", key));
  CHECK(WithinProject("projects/p", key) != key);
  CHECK(WithinProject("projects/p", key) !=
        WithinProject("projects/p", InspectionKey({}, Device())));
}

TEST_CASE("Who was no winner of one search is evaluated again where it would be one", "[search]") {
  v1::EvaluationRequest request;
  request.set_speedup_to_beat(2);
  v1::Evaluation evaluation;
  evaluation.add_comparisons()->set_speedup(1.5);
  evaluation.set_skipped_confirmation(true);
  const std::string key = EvaluationFingerprint(request, Device());
  CHECK(IsReusable(request, evaluation));

  request.set_speedup_to_beat(1.2);
  CHECK_FALSE(IsReusable(request, evaluation));
  CHECK(EvaluationFingerprint(request, Device()) == key);

  evaluation.set_skipped_confirmation(false);
  CHECK(IsReusable(request, evaluation));
}

TEST_CASE("A winner that is confirmed later needs no confirmation now", "[search]") {
  v1::EvaluationRequest request;
  request.set_speedup_to_beat(1.2);
  request.set_defers_confirmation(true);
  v1::Evaluation evaluation;
  evaluation.add_comparisons()->set_speedup(1.5);
  evaluation.set_skipped_confirmation(true);

  CHECK(IsReusable(request, evaluation));
  // It is asked for everything.
  request.set_defers_confirmation(false);
  CHECK_FALSE(IsReusable(request, evaluation));
  request.set_speedup_to_beat(0);
  CHECK_FALSE(IsReusable(request, evaluation));
}

TEST_CASE("Who has no profile is evaluated again where one is needed", "[search]") {
  v1::EvaluationRequest request;
  request.set_speedup_to_beat(2);
  v1::Evaluation evaluation;
  evaluation.add_comparisons()->set_speedup(0.5);
  evaluation.set_skipped_confirmation(true);
  const std::string key = EvaluationFingerprint(request, Device());
  CHECK(IsReusable(request, evaluation));

  request.set_needs_profile(true);
  CHECK_FALSE(IsReusable(request, evaluation));
  CHECK(EvaluationFingerprint(request, Device()) == key);
  evaluation.mutable_profile()->set_source("cupti");
  CHECK(IsReusable(request, evaluation));
  evaluation.clear_profile();
  request.mutable_options()->set_omit_profile(true);
  CHECK(IsReusable(request, evaluation));
}

}  // namespace mtmc::search
