// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/counter_config.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace mtmc::worker {

CounterConfig::CounterConfig(const CuptiApi& api, Options options)
    : api_(api), options_(std::move(options)) {
  for (const std::string& counter : options_.counters) names_.push_back(counter.c_str());
}

CounterConfig::~CounterConfig() { Destroy(host_); }

absl::StatusOr<std::unique_ptr<CounterConfig>> CounterConfig::Create(const CuptiApi& api,
                                                                     Options options) {
  std::unique_ptr<CounterConfig> config(new CounterConfig(api, std::move(options)));
  MTMC_ASSIGN_OR_RETURN(config->host_, config->CreateHost());
  if (!config->Add(config->host_, config->names_).ok()) {
    MTMC_RETURN_IF_ERROR(config->DropMissing());
  }
  MTMC_RETURN_IF_ERROR(config->MakeImage());
  return config;
}

absl::StatusOr<CUpti_Profiler_Host_Object*> CounterConfig::CreateHost() const {
  CUpti_Profiler_Host_Initialize_Params params{};
  params.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
  params.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  params.pChipName = options_.chip.c_str();
  params.pCounterAvailabilityImage =
      options_.availability.empty() ? nullptr : options_.availability.data();
  MTMC_RETURN_IF_ERROR(
      CuptiStatus(api_, api_.cuptiProfilerHostInitialize(&params), "cuptiProfilerHostInitialize"));
  return params.pHostObject;
}

absl::Status CounterConfig::Add(CUpti_Profiler_Host_Object* host,
                                std::span<const char* const> names) const {
  std::vector<const char*> writable(names.begin(), names.end());
  CUpti_Profiler_Host_ConfigAddMetrics_Params params{};
  params.structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE;
  params.pHostObject = host;
  params.ppMetricNames = writable.data();
  params.numMetrics = writable.size();
  return CuptiStatus(api_, api_.cuptiProfilerHostConfigAddMetrics(&params),
                     "cuptiProfilerHostConfigAddMetrics");
}

void CounterConfig::Destroy(CUpti_Profiler_Host_Object* host) const {
  if (!host) return;
  CUpti_Profiler_Host_Deinitialize_Params params{};
  params.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
  params.pHostObject = host;
  api_.cuptiProfilerHostDeinitialize(&params);
}

// CUPTI refuses a list as a whole, so each name is tried alone: a millisecond
// each, once per process.
absl::Status CounterConfig::DropMissing() {
  std::vector<const char*> kept;
  for (const char* name : names_) {
    MTMC_ASSIGN_OR_RETURN(CUpti_Profiler_Host_Object * host, CreateHost());
    const bool is_there = Add(host, {&name, 1}).ok();
    Destroy(host);
    if (is_there) {
      kept.push_back(name);
    } else {
      missing_.emplace_back(name);
    }
  }
  names_ = std::move(kept);
  if (names_.empty()) {
    return absl::UnavailableError(
        absl::StrCat("chip ", options_.chip, " has none of the counters asked for"));
  }
  // What was added before the refusal is not known.
  Destroy(std::exchange(host_, nullptr));
  MTMC_ASSIGN_OR_RETURN(host_, CreateHost());
  return Add(host_, names_);
}

absl::Status CounterConfig::MakeImage() {
  CUpti_Profiler_Host_GetConfigImageSize_Params size{};
  size.structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE;
  size.pHostObject = host_;
  MTMC_RETURN_IF_ERROR(CuptiStatus(api_, api_.cuptiProfilerHostGetConfigImageSize(&size),
                                   "cuptiProfilerHostGetConfigImageSize"));
  image_.resize(size.configImageSize);
  CUpti_Profiler_Host_GetConfigImage_Params image{};
  image.structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE;
  image.pHostObject = host_;
  image.configImageSize = image_.size();
  image.pConfigImage = image_.data();
  MTMC_RETURN_IF_ERROR(CuptiStatus(api_, api_.cuptiProfilerHostGetConfigImage(&image),
                                   "cuptiProfilerHostGetConfigImage"));
  CUpti_Profiler_Host_GetNumOfPasses_Params passes{};
  passes.structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE;
  passes.configImageSize = image_.size();
  passes.pConfigImage = image_.data();
  MTMC_RETURN_IF_ERROR(CuptiStatus(api_, api_.cuptiProfilerHostGetNumOfPasses(&passes),
                                   "cuptiProfilerHostGetNumOfPasses"));
  passes_ = static_cast<int>(passes.numOfPasses);
  return absl::OkStatus();
}

absl::StatusOr<profile::Values> CounterConfig::Evaluate(std::span<const uint8_t> data,
                                                        size_t range) const {
  std::vector<const char*> names = names_;
  std::vector<double> values(names.size());
  CUpti_Profiler_Host_EvaluateToGpuValues_Params params{};
  params.structSize = CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE;
  params.pHostObject = host_;
  params.pCounterDataImage = data.data();
  params.counterDataImageSize = data.size();
  params.rangeIndex = range;
  params.ppMetricNames = names.data();
  params.numMetrics = names.size();
  params.pMetricValues = values.data();
  MTMC_RETURN_IF_ERROR(CuptiStatus(api_, api_.cuptiProfilerHostEvaluateToGpuValues(&params),
                                   "cuptiProfilerHostEvaluateToGpuValues"));
  profile::Values result;
  for (size_t i = 0; i < names.size(); ++i) result[names[i]] = values[i];
  return result;
}

}  // namespace mtmc::worker
