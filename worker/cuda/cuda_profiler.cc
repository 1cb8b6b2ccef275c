// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cuda_profiler.h"

#include <utility>

#include "common/base/log.h"

namespace mtmc::worker {
namespace {

void LogFallback(const absl::Status& status) {
  base::Log(base::LogLevel::kWarning, "kernels are profiled with events", {{"reason", status}});
}

}  // namespace

std::unique_ptr<CudaProfiler> CudaProfiler::Create(std::shared_ptr<const CudaContext> context,
                                                   const std::string& library) {
  auto api = OpenCupti(library);
  if (api.ok()) return std::unique_ptr<CudaProfiler>(new CudaProfiler(**api, std::move(context)));
  LogFallback(api.status());
  return nullptr;
}

CudaProfiler::CudaProfiler(const CuptiApi& api, std::shared_ptr<const CudaContext> context)
    : api_(api),
      context_(std::move(context)),
      limits_(context_->ReadLimits()),
      activity_(api),
      counters_(api, context_) {}

bool CudaProfiler::Start() {
  if (is_refused_) return false;
  is_attached_ = true;
  const absl::Status status = activity_.Start();
  if (status.ok()) return true;
  LogFallback(status);
  activity_.Stop();
  is_refused_ = true;
  return false;
}

Outcome<std::vector<StepActivity>> CudaProfiler::Profile(const std::vector<Body>& steps) {
  std::vector<StepActivity> activities;
  MaybeFailure failure;
  for (const Body& step : steps) {
    failure = step();
    if (!failure) failure = context_->Synchronize();
    if (failure) break;
    StepActivity activity = activity_.Collect();
    activity.occupancy_ratio =
        TheoreticalOccupancy(limits_, {.threads_per_block = activity.threads_per_block,
                                       .registers_per_thread = activity.registers_per_thread,
                                       .shared_bytes_per_block = activity.shared_memory_bytes});
    activities.push_back(activity);
  }
  activity_.Stop();
  if (failure) return *std::move(failure);
  return activities;
}

Outcome<StepCounters> CudaProfiler::Count(const std::vector<Body>& steps, CounterScope scope,
                                          const Body& prepare) {
  is_attached_ = false;
  return counters_.Count(steps, scope, prepare);
}

void CudaProfiler::Detach() {
  if (std::exchange(is_attached_, false)) api_.cuptiFinalize();
}

}  // namespace mtmc::worker
