// SPDX-License-Identifier: Apache-2.0
#include "worker/bench/synthetic_runner.h"

#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "worker/bench/synthetic_program.h"
#include "worker/runner/shared_file.h"

namespace mtmc::worker {
namespace {

constexpr absl::Duration kTimeout = absl::Minutes(2);
constexpr absl::Duration kPollInterval = absl::Milliseconds(20);

// Sets of inputs, as many as the verifier keeps for a small problem.
constexpr int kSets = 3;
constexpr double kCheckedRatio = 0.2;

}  // namespace

SyntheticRunner::SyntheticRunner(const Options& options)
    : options_(options),
      client_({.program = options.program, .scratch = options.scratch, .tools = options.tools}),
      inputs_(absl::StrCat(options.scratch, "/inputs.bin")) {}

absl::StatusOr<pipe::v1::RunnerResponse> SyntheticRunner::Call(
    const pipe::v1::RunnerRequest& request) {
  auto reply = client_.Call(request, kTimeout);
  if (!reply.is_answered()) return absl::UnavailableError(reply.detail);
  if (reply.response.has_failure()) {
    return absl::InternalError(reply.response.failure().message());
  }
  return std::move(reply.response);
}

absl::StatusOr<v1::DeviceFacts> SyntheticRunner::Open(const DeviceChoice& device) {
  pipe::v1::RunnerRequest request;
  request.mutable_open()->set_backend(device.backend);
  request.mutable_open()->set_device_index(device.index);
  MTMC_ASSIGN_OR_RETURN(const pipe::v1::RunnerResponse response, Call(request));
  MTMC_RETURN_IF_ERROR(WriteInputs());
  AwaitSpare();
  return response.opened().device();
}

absl::Status SyntheticRunner::Renew() {
  client_.Retire();
  pipe::v1::RunnerRequest request;
  request.mutable_canary();
  MTMC_RETURN_IF_ERROR(Call(request).status());
  AwaitSpare();
  return absl::OkStatus();
}

void SyntheticRunner::AwaitSpare() {
  base::RealClock clock;
  const absl::Time deadline = clock.Now() + kTimeout;
  absl::Mutex mu;
  absl::CondVar never;
  absl::MutexLock lock(&mu);
  while (!client_.has_spare() && clock.Now() < deadline) {
    clock.Wait(never, mu, clock.Now() + kPollInterval);
  }
}

absl::Status SyntheticRunner::WriteInputs() {
  MTMC_ASSIGN_OR_RETURN(
      const SharedMapping mapping,
      SharedMapping::Create(inputs_, kSets * kSyntheticElements * int64_t{sizeof(float)}));
  std::mt19937 random(1);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> values(static_cast<size_t>(kSets * kSyntheticElements));
  for (float& value : values) value = draw(random);
  std::memcpy(mapping.bytes().data(), values.data(), mapping.bytes().size());
  return absl::OkStatus();
}

absl::Status SyntheticRunner::Load(const std::string& text, const std::string& binary,
                                   int64_t loops, Role role) {
  const bool is_checked = role == Role::kCandidate;
  pipe::v1::RunnerRequest request;
  pipe::v1::RunnerRequest::Load& load = *request.mutable_load();
  load.set_program(text);
  load.set_binary(binary);
  (*load.mutable_parameters())[kLoopsParameter] = loops;
  MTMC_RETURN_IF_ERROR(Call(request).status());
  kept_.clear();
  for (int set = 0; set < (is_checked ? kSets : 1); ++set) {
    pipe::v1::RunnerRequest execute;
    execute.mutable_execute()->set_poison(0xA5);
    pipe::v1::SharedTensor& tensor = *execute.mutable_execute()->add_inputs();
    tensor.set_name("x");
    tensor.mutable_file()->set_path(inputs_);
    tensor.mutable_file()->set_offset(set * kSyntheticElements * int64_t{sizeof(float)});
    if (is_checked) {
      execute.mutable_execute()->set_keep_as(set + 1);
      kept_.push_back(set + 1);
    }
    MTMC_RETURN_IF_ERROR(Call(execute).status());
  }
  sampler_ = std::make_unique<RunnerSampler>(
      client_, RunnerSampler::Options{.checked_ratio = is_checked ? kCheckedRatio : 0,
                                      .deadline = absl::Now() + kTimeout});
  return absl::OkStatus();
}

Sampler SyntheticRunner::MakeSampler() {
  return [this](const BlockRequest& request) -> absl::StatusOr<SampleBlock> {
    MTMC_ASSIGN_OR_RETURN(CheckedBlock block, sampler_->Take(request, kept_));
    return std::move(block.samples);
  };
}

}  // namespace mtmc::worker
