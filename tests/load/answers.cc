// SPDX-License-Identifier: Apache-2.0
#include "tests/load/answers.h"

#include <google/protobuf/text_format.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/check.h"
#include "google/protobuf/util/time_util.h"

namespace mtmc::load {
namespace {

constexpr char kGraph[] = R"pb(
  inputs {
    name: "x"
    kind: KIND_USER_INPUT
    type {
      data_type: DATA_TYPE_F32
      shape: [ 1024, 512 ]
    }
  }
  inputs {
    name: "w"
    kind: KIND_PARAMETER
    target: "fc.weight"
    type {
      data_type: DATA_TYPE_F32
      shape: [ 512, 512 ]
    }
  }
  nodes {
    name: "linear"
    op: "aten::linear.default"
    line: 1
    module_path: "fc"
    arguments { value: "x" }
    arguments { value: "w" }
    arguments { none {} }
    argument_names: [ "input", "weight", "bias" ]
    results: "linear"
    result_types {
      data_type: DATA_TYPE_F32
      shape: [ 1024, 512 ]
    }
  }
  nodes {
    name: "tanh"
    op: "aten::tanh.default"
    line: 2
    arguments { value: "linear" }
    argument_names: "self"
    results: "tanh"
    result_types {
      data_type: DATA_TYPE_F32
      shape: [ 1024, 512 ]
    }
  }
  nodes {
    name: "mul"
    op: "aten::mul.Tensor"
    line: 2
    arguments { value: "tanh" }
    arguments { value: "x" }
    argument_names: [ "self", "other" ]
    results: "mul"
    result_types {
      data_type: DATA_TYPE_F32
      shape: [ 1024, 512 ]
    }
  }
  nodes {
    name: "amax"
    op: "aten::amax.default"
    line: 3
    arguments { value: "mul" }
    arguments { list { elements { int_value: -1 } } }
    arguments { bool_value: true }
    argument_names: [ "self", "dim", "keepdim" ]
    results: "amax"
    result_types {
      data_type: DATA_TYPE_F32
      shape: [ 1024, 1 ]
    }
  }
  outputs {
    name: "out_0"
    kind: KIND_USER_OUTPUT
    value: "amax"
    type {
      data_type: DATA_TYPE_F32
      shape: [ 1024, 1 ]
    }
  }
  source: "y = self.fc(x)\nz = torch.tanh(y) * x\nreturn z.amax(-1, True)"
  digest: "load"
)pb";

constexpr double kEagerSeconds = 1e-3;
constexpr int kSamples = 20;
constexpr int kWorkloads = 15;
constexpr int kVariants = 8;

v1::Inspection Inspect() {
  static const auto* const kInspection = [] {
    auto* inspection = new v1::Inspection();
    MTMC_CHECK(google::protobuf::TextFormat::ParseFromString(kGraph, inspection->mutable_graph()));
    auto* eager = inspection->add_baselines();
    eager->set_baseline(v1::BASELINE_EAGER);
    eager->set_median_seconds(kEagerSeconds);
    eager->set_samples(kSamples);
    // So few that no program comes near the speed of light and ends its job.
    inspection->set_minimum_bytes(64);
    return inspection;
  }();
  return *kInspection;
}

void Measure(double seconds, v1::Measurement& measurement) {
  measurement.set_median_seconds(seconds);
  measurement.set_noise_ratio(0.01);
  measurement.set_error_ratio(0.003);
  measurement.set_is_cold(true);
  measurement.set_stopped_by("noise");
  for (int i = 0; i < kSamples; ++i) measurement.add_samples_seconds(seconds * (1 + 0.001 * i));
}

void AddStages(v1::Evaluation& evaluation) {
  const auto now =
      google::protobuf::util::TimeUtil::NanosecondsToTimestamp(absl::GetCurrentTimeNanos());
  for (const v1::Stage stage :
       {v1::STAGE_BUILD, v1::STAGE_VERIFY, v1::STAGE_TUNE, v1::STAGE_MEASURE, v1::STAGE_PROFILE}) {
    auto* span = evaluation.add_spans();
    span->set_stage(stage);
    *span->mutable_start_time() = now;
    *span->mutable_end_time() = now;
  }
}

void AddDetails(double seconds, v1::Evaluation& evaluation) {
  for (int i = 0; i < kWorkloads; ++i)
    evaluation.mutable_checks()->add_workloads()->set_seed_index(i);
  evaluation.mutable_checks()->set_oracle("fp64");
  for (int i = 0; i < kVariants; ++i) {
    auto* variant = evaluation.add_variants();
    (*variant->mutable_parameters())["block"] = 1 << i;
    variant->set_median_seconds(seconds * (1 + 0.1 * i));
  }
  for (int i = 0; i < 2; ++i) {
    auto* kernel = evaluation.mutable_profile()->add_kernels();
    kernel->set_kernel(absl::StrCat("kernel_", i));
    kernel->set_seconds(seconds / 2);
    kernel->set_share_ratio(0.5);
  }
  evaluation.mutable_profile()->set_source("host");
  evaluation.mutable_profile()->set_summary("invented by mtmc-load; nothing was run");
}

v1::Evaluation Evaluate(const v1::EvaluationRequest& request) {
  const std::string& digest = request.program().sha256();
  // A value of 0 to 255 that looks random and is the program's own.
  const int quality = digest.size() < 2 ? 0 : std::stoi(digest.substr(0, 2), nullptr, 16);
  v1::Evaluation evaluation;
  AddStages(evaluation);
  if (quality % 8 == 0) {
    evaluation.set_verdict(v1::Evaluation::VERDICT_WRONG);
    evaluation.mutable_failure()->set_kind(v1::Failure::KIND_WRONG_RESULT);
    evaluation.mutable_failure()->set_stage(v1::STAGE_VERIFY);
    evaluation.mutable_failure()->set_message("invented by mtmc-load; nothing was run");
    return evaluation;
  }
  const double speedup = 0.5 + quality / 128.0;
  const double seconds = kEagerSeconds / speedup;
  evaluation.set_verdict(v1::Evaluation::VERDICT_CORRECT);
  evaluation.add_satisfied(v1::PRECISION_KERNELBENCH);
  Measure(seconds, *evaluation.mutable_measurement());
  auto* comparison = evaluation.add_comparisons();
  comparison->set_baseline(v1::BASELINE_EAGER);
  comparison->set_outcome(speedup > 1 ? v1::Comparison::OUTCOME_FASTER
                                      : v1::Comparison::OUTCOME_SLOWER);
  comparison->set_speedup(speedup);
  comparison->set_speedup_low(0.98 * speedup);
  comparison->set_speedup_high(1.02 * speedup);
  Measure(kEagerSeconds, *comparison->mutable_baseline_measurement());
  AddDetails(seconds, evaluation);
  return evaluation;
}

}  // namespace

v1::DeviceFacts SimulatedDevice() {
  v1::DeviceFacts device;
  device.set_product("simulated-cpu");
  device.add_dialects(v1::DIALECT_OPENCL);
  device.set_compute_units(8);
  device.set_memory_bytes(int64_t{16} << 30);
  device.set_cache_bytes(int64_t{32} << 20);
  device.set_shared_memory_per_block_bytes(int64_t{64} << 10);
  device.set_max_threads_per_block(4096);
  device.set_warp_size(1);
  device.set_vector_bytes(32);
  device.set_memory_bandwidth_bytes_per_second(2e10);
  device.set_fp32_flops_per_second(2e11);
  device.set_driver_version("1");
  device.set_toolchain_version("1");
  return device;
}

v1::LeaseResult Answer(const v1::Lease& lease) {
  v1::LeaseResult result;
  if (lease.has_inspection()) {
    *result.mutable_inspection() = Inspect();
  } else {
    *result.mutable_evaluation() = Evaluate(lease.evaluation());
  }
  return result;
}

}  // namespace mtmc::load
