// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/range_profiler.h"

#include <charconv>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace mtmc::worker {
namespace {

using profile::CounterSet;

// CUPTI's image of the counters holds 2,000 to 3,000 ranges.
constexpr size_t kMaxSteps = 1000;

// A pass may be repeated; more than this says that it never ends.
constexpr int kMaxExtraPasses = 8;

// Whether the counters of the tensor set have anything to count.
constexpr char kTensorActivity[] =
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed";

bool UsesTensorCores(const StepCounters& counters) {
  for (const profile::Values& step : counters.steps) {
    const auto found = step.find(kTensorActivity);
    if (found != step.end() && found->second > 0) return true;
  }
  return false;
}

// For people: what happened, and what to do about it.
std::string Explain(const absl::Status& status) {
  if (!absl::IsPermissionDenied(status)) return std::string(status.message());
  return absl::StrCat(
      "the host keeps counters from this user: load the driver's module `nvidia` with "
      "NVreg_RestrictProfilingToAdminUsers=0, or give the worker CAP_SYS_ADMIN (",
      std::string(status.message()), ")");
}

}  // namespace

// Counters of one set, from Enable to Disable.
class RangeProfiler::Session {
 public:
  Session(const CuptiApi& api, const CounterConfig& config) : api_(api), config_(config) {}

  ~Session() {
    if (!profiler_) return;
    CUpti_RangeProfiler_Disable_Params params{};
    params.structSize = CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE;
    params.pRangeProfilerObject = profiler_;
    api_.cuptiRangeProfilerDisable(&params);
  }

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  absl::Status Open(CUcontext context, size_t num_ranges) {
    CUpti_RangeProfiler_Enable_Params enable{};
    enable.structSize = CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE;
    enable.ctx = context;
    MTMC_RETURN_IF_ERROR(
        CuptiStatus(api_, api_.cuptiRangeProfilerEnable(&enable), "cuptiRangeProfilerEnable"));
    profiler_ = enable.pRangeProfilerObject;
    MTMC_RETURN_IF_ERROR(MakeData(num_ranges));
    return Configure(num_ranges);
  }

  // Ranges are numbered by the caller.
  absl::Status Push(size_t range) {
    name_ = std::to_string(range);
    CUpti_RangeProfiler_PushRange_Params params{};
    params.structSize = CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE;
    params.pRangeProfilerObject = profiler_;
    params.pRangeName = name_.c_str();
    return CuptiStatus(api_, api_.cuptiRangeProfilerPushRange(&params),
                       "cuptiRangeProfilerPushRange");
  }

  absl::Status Pop() {
    CUpti_RangeProfiler_PopRange_Params params{};
    params.structSize = CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE;
    params.pRangeProfilerObject = profiler_;
    return CuptiStatus(api_, api_.cuptiRangeProfilerPopRange(&params),
                       "cuptiRangeProfilerPopRange");
  }

  absl::Status StartPass() {
    CUpti_RangeProfiler_Start_Params params{};
    params.structSize = CUpti_RangeProfiler_Start_Params_STRUCT_SIZE;
    params.pRangeProfilerObject = profiler_;
    return CuptiStatus(api_, api_.cuptiRangeProfilerStart(&params), "cuptiRangeProfilerStart");
  }

  // True after the last pass.
  absl::StatusOr<bool> StopPass() {
    CUpti_RangeProfiler_Stop_Params params{};
    params.structSize = CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE;
    params.pRangeProfilerObject = profiler_;
    MTMC_RETURN_IF_ERROR(
        CuptiStatus(api_, api_.cuptiRangeProfilerStop(&params), "cuptiRangeProfilerStop"));
    return params.isAllPassSubmitted != 0;
  }

  // Adds what was counted to `steps`, which are the ranges by number.
  absl::Status Collect(std::vector<profile::Values>& steps) {
    CUpti_RangeProfiler_DecodeData_Params decode{};
    decode.structSize = CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE;
    decode.pRangeProfilerObject = profiler_;
    MTMC_RETURN_IF_ERROR(CuptiStatus(api_, api_.cuptiRangeProfilerDecodeData(&decode),
                                     "cuptiRangeProfilerDecodeData"));
    CUpti_RangeProfiler_GetCounterDataInfo_Params info{};
    info.structSize = CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE;
    info.pCounterDataImage = data_.data();
    info.counterDataImageSize = data_.size();
    MTMC_RETURN_IF_ERROR(CuptiStatus(api_, api_.cuptiRangeProfilerGetCounterDataInfo(&info),
                                     "cuptiRangeProfilerGetCounterDataInfo"));
    for (size_t i = 0; i < info.numTotalRanges; ++i) {
      MTMC_ASSIGN_OR_RETURN(const size_t step, ReadNumber(i));
      if (step >= steps.size()) continue;
      MTMC_ASSIGN_OR_RETURN(profile::Values values, config_.Evaluate(data_, i));
      steps[step].merge(std::move(values));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status MakeData(size_t num_ranges) {
    std::vector<const char*> names = config_.names();
    CUpti_RangeProfiler_GetCounterDataSize_Params size{};
    size.structSize = CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE;
    size.pRangeProfilerObject = profiler_;
    size.pMetricNames = names.data();
    size.numMetrics = names.size();
    size.maxNumOfRanges = num_ranges;
    size.maxNumRangeTreeNodes = static_cast<uint32_t>(num_ranges);
    MTMC_RETURN_IF_ERROR(CuptiStatus(api_, api_.cuptiRangeProfilerGetCounterDataSize(&size),
                                     "cuptiRangeProfilerGetCounterDataSize"));
    data_.assign(size.counterDataSize, 0);
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params initialize{};
    initialize.structSize = CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE;
    initialize.pRangeProfilerObject = profiler_;
    initialize.counterDataSize = data_.size();
    initialize.pCounterData = data_.data();
    return CuptiStatus(api_, api_.cuptiRangeProfilerCounterDataImageInitialize(&initialize),
                       "cuptiRangeProfilerCounterDataImageInitialize");
  }

  absl::Status Configure(size_t num_ranges) {
    CUpti_RangeProfiler_SetConfig_Params params{};
    params.structSize = CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE;
    params.pRangeProfilerObject = profiler_;
    params.configSize = config_.image().size();
    params.pConfig = config_.image().data();
    params.counterDataImageSize = data_.size();
    params.pCounterDataImage = data_.data();
    params.range = CUPTI_UserRange;
    params.replayMode = CUPTI_UserReplay;
    params.maxRangesPerPass = num_ranges;
    params.numNestingLevels = 1;
    params.minNestingLevel = 1;
    params.passIndex = 0;
    params.targetNestingLevel = 1;
    return CuptiStatus(api_, api_.cuptiRangeProfilerSetConfig(&params),
                       "cuptiRangeProfilerSetConfig");
  }

  absl::StatusOr<size_t> ReadNumber(size_t index) const {
    CUpti_RangeProfiler_CounterData_GetRangeInfo_Params params{};
    params.structSize = CUpti_RangeProfiler_CounterData_GetRangeInfo_Params_STRUCT_SIZE;
    params.pCounterDataImage = data_.data();
    params.counterDataImageSize = data_.size();
    params.rangeIndex = index;
    params.rangeDelimiter = "/";
    MTMC_RETURN_IF_ERROR(CuptiStatus(api_, api_.cuptiRangeProfilerCounterDataGetRangeInfo(&params),
                                     "cuptiRangeProfilerCounterDataGetRangeInfo"));
    size_t number = 0;
    const char* end = params.rangeName ? params.rangeName + std::strlen(params.rangeName) : nullptr;
    if (!end || std::from_chars(params.rangeName, end, number).ptr != end) {
      return absl::UnavailableError(
          absl::StrCat("CUPTI named a range '", params.rangeName ? params.rangeName : "", "'"));
    }
    return number;
  }

  const CuptiApi& api_;
  const CounterConfig& config_;
  CUpti_RangeProfiler_Object* profiler_ = nullptr;
  // CUPTI writes into it until it is disabled.
  std::vector<uint8_t> data_;
  std::string name_;
};

RangeProfiler::RangeProfiler(const CuptiApi& api, std::shared_ptr<const CudaContext> context)
    : api_(api), context_(std::move(context)) {
  sets_[0].name = CounterSet::kHardware;
  sets_[1].name = CounterSet::kInstrumented;
  sets_[2].name = CounterSet::kTensor;
}

RangeProfiler::~RangeProfiler() = default;

absl::Status RangeProfiler::Initialize() {
  // After cuptiFinalize() the profiler cannot attach CUPTI by itself and fails with
  // CUPTI_ERROR_NOT_INITIALIZED; activity can (H200, CUPTI 13.0).
  api_.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  api_.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  CUpti_Profiler_Initialize_Params params{};
  params.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
  MTMC_RETURN_IF_ERROR(
      CuptiStatus(api_, api_.cuptiProfilerInitialize(&params), "cuptiProfilerInitialize"));
  if (!chip_.empty()) return absl::OkStatus();
  MTMC_RETURN_IF_ERROR(CheckSupport());
  return Describe();
}

absl::Status RangeProfiler::CheckSupport() {
  CUpti_Profiler_DeviceSupported_Params params{};
  params.structSize = CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE;
  params.cuDevice = context_->device();
  params.api = CUPTI_PROFILER_RANGE_PROFILING;
  MTMC_RETURN_IF_ERROR(CuptiStatus(api_, api_.cuptiProfilerDeviceSupported(&params),
                                   "cuptiProfilerDeviceSupported"));
  if (params.isSupported == CUPTI_PROFILER_CONFIGURATION_SUPPORTED) return absl::OkStatus();
  const std::pair<CUpti_Profiler_Support_Level, const char*> parts[] = {
      {params.architecture, "its architecture"},
      {params.sli, "SLI"},
      {params.vGpu, "a virtual GPU that does not allow it"},
      {params.confidentialCompute, "confidential computing"},
      {params.cmp, "a mining product"},
      {params.wsl, "Windows Subsystem for Linux"}};
  std::string reason = "the device cannot be profiled";
  for (const auto& [level, name] : parts) {
    if (level != CUPTI_PROFILER_CONFIGURATION_SUPPORTED) absl::StrAppend(&reason, ": ", name);
  }
  return absl::UnavailableError(reason);
}

absl::Status RangeProfiler::Describe() {
  CUpti_Profiler_GetCounterAvailability_Params availability{};
  availability.structSize = CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE;
  availability.ctx = context_->context();
  MTMC_RETURN_IF_ERROR(CuptiStatus(api_, api_.cuptiProfilerGetCounterAvailability(&availability),
                                   "cuptiProfilerGetCounterAvailability"));
  availability_.resize(availability.counterAvailabilityImageSize);
  availability.pCounterAvailabilityImage = availability_.data();
  MTMC_RETURN_IF_ERROR(CuptiStatus(api_, api_.cuptiProfilerGetCounterAvailability(&availability),
                                   "cuptiProfilerGetCounterAvailability"));
  CUpti_Device_GetChipName_Params chip{};
  chip.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE;
  chip.deviceIndex = static_cast<size_t>(context_->device_index());
  MTMC_RETURN_IF_ERROR(
      CuptiStatus(api_, api_.cuptiDeviceGetChipName(&chip), "cuptiDeviceGetChipName"));
  chip_ = chip.pChipName;
  return absl::OkStatus();
}

// Attached, CUPTI slows every launch; so it is detached after each use.
void RangeProfiler::Detach() {
  CUpti_Profiler_DeInitialize_Params params{};
  params.structSize = CUpti_Profiler_DeInitialize_Params_STRUCT_SIZE;
  api_.cuptiProfilerDeInitialize(&params);
  api_.cuptiFinalize();
}

Outcome<StepCounters> RangeProfiler::Count(const std::vector<Body>& steps, CounterScope scope,
                                           const Body& prepare) {
  if (steps.size() > kMaxSteps) {
    return StepCounters{
        .missing = absl::StrCat("plans of more than ", kMaxSteps, " steps are not counted")};
  }
  const absl::Status status = Initialize();
  if (!status.ok()) {
    Detach();
    return StepCounters{.missing = Explain(status)};
  }
  StepCounters counters;
  counters.steps.resize(steps.size());
  MaybeFailure failure;
  for (Set& set : sets_) {
    if (scope == CounterScope::kHardware && set.name != CounterSet::kHardware) continue;
    if (set.name == CounterSet::kTensor && !UsesTensorCores(counters)) continue;
    auto counted = CountSet(set, steps, prepare, counters);
    if (!counted.ok()) {
      failure = counted.failure();
      break;
    }
    if (counted->ok()) continue;
    // Without the first set the others are not worth their time.
    if (set.name == CounterSet::kHardware) {
      counters = {.missing = Explain(*counted)};
      break;
    }
    set.status = *counted;
    base::Log(base::LogLevel::kWarning, "some counters are left out", {{"reason", *counted}});
  }
  Detach();
  if (failure) return *std::move(failure);
  return counters;
}

Outcome<absl::Status> RangeProfiler::CountSet(Set& set, const std::vector<Body>& steps,
                                              const Body& prepare, StepCounters& counters) {
  if (!set.status.ok()) return absl::OkStatus();
  if (!set.config) {
    auto config = CounterConfig::Create(
        api_,
        {.chip = chip_, .availability = availability_, .counters = profile::CountersOf(set.name)});
    if (!config.ok()) return config.status();
    set.config = *std::move(config);
  }
  const absl::Time start = absl::Now();
  Session session(api_, *set.config);
  absl::Status status = session.Open(context_->context(), steps.size());
  const absl::Time opened = absl::Now();
  const int most = set.config->passes() + kMaxExtraPasses;
  bool is_done = false;
  for (int pass = 0; status.ok() && !is_done; ++pass) {
    if (pass == most) return absl::UnavailableError("CUPTI asks for passes without end");
    if (MaybeFailure failure = prepare()) return *std::move(failure);
    status = session.StartPass();
    for (size_t i = 0; status.ok() && i < steps.size(); ++i) {
      status = session.Push(i);
      if (!status.ok()) break;
      if (MaybeFailure failure = steps[i]()) return *std::move(failure);
      if (MaybeFailure failure = context_->Synchronize()) return *std::move(failure);
      status = session.Pop();
    }
    if (!status.ok()) break;
    auto stopped = session.StopPass();
    status = stopped.status();
    is_done = stopped.value_or(true);
    ++counters.passes;
  }
  if (!status.ok()) return status;
  const absl::Time passed = absl::Now();
  status = session.Collect(counters.steps);
  base::Log(base::LogLevel::kDebug, "counters collected",
            {{"counters", set.config->names().size()},
             {"passes", set.config->passes()},
             {"open_seconds", absl::ToDoubleSeconds(opened - start)},
             {"pass_seconds", absl::ToDoubleSeconds(passed - opened)},
             {"decode_seconds", absl::ToDoubleSeconds(absl::Now() - passed)}});
  return status;
}

}  // namespace mtmc::worker
