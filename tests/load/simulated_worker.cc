// SPDX-License-Identifier: Apache-2.0
#include "tests/load/simulated_worker.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/id.h"
#include "common/config/version.h"
#include "common/rpc/status.h"
#include "tests/load/answers.h"
#include "tests/load/pacer.h"
#include "tests/load/tally.h"

namespace mtmc::load {
namespace {

// As of a real worker, whose idle calls are held for some seconds.
constexpr absl::Duration kCallTimeout = absl::Seconds(30);
constexpr absl::Duration kRetry = absl::Milliseconds(100);
// Between two calls of one that works.
constexpr absl::Duration kInterval = absl::Milliseconds(500);

}  // namespace

struct SimulatedWorker::Call {
  grpc::ClientContext context;
  v1::SynchronizeRequest request;
  v1::SynchronizeResponse response;
};

SimulatedWorker::SimulatedWorker(const Field& field, const std::shared_ptr<grpc::Channel>& channel,
                                 int number, absl::Duration mean_work, uint64_t seed)
    : field_(field),
      mean_work_(mean_work),
      stub_(v1::LeaseService::NewStub(channel)),
      random_(seed) {
  v1::Worker& worker = *request_.mutable_worker();
  worker.set_name(absl::StrCat("workers/load-", number));
  worker.set_version(std::string(config::Version()));
  worker.set_host("load");
  *worker.mutable_device() = SimulatedDevice();
  worker.mutable_device()->set_uuid(absl::StrCat("load-", number));
  worker.set_isolation_level(v1::ISOLATION_CONFINED);
  request_.set_instance_id(base::MakeUuid4());
  request_.mutable_idle();
}

void SimulatedWorker::Start() { Send(); }

void SimulatedWorker::Send() {
  auto call = std::make_shared<Call>();
  {
    absl::MutexLock lock(&mu_);
    Describe(absl::Now());
    call->request = request_;
  }
  call->context.set_deadline(absl::ToChronoTime(absl::Now() + kCallTimeout));
  if (!field_.calls.Add(call->context)) return;
  stub_->async()->Synchronize(&call->context, &call->request, &call->response,
                              [this, call](const grpc::Status& status) {
                                Take(*call, rpc::FromGrpc(status));
                                field_.calls.Remove(call->context);
                              });
}

void SimulatedWorker::Describe(absl::Time now) {
  if (lease_.id().empty()) {
    request_.mutable_idle();
  } else if (now < done_time_) {
    request_.mutable_executing()->set_lease_id(lease_.id());
    request_.mutable_executing()->set_stage(v1::STAGE_VERIFY);
  } else if (request_.completed().lease_id() != lease_.id()) {
    request_.mutable_completed()->set_lease_id(lease_.id());
    *request_.mutable_completed()->mutable_result() = Answer(lease_);
    result_time_ = now;
  }
}

void SimulatedWorker::Take(const Call& call, const absl::Status& status) {
  if (!status.ok()) {
    if (absl::IsCancelled(status)) return;
    IsPassing(status) ? field_.tally.NoteBreak() : field_.tally.NoteError(status);
    return field_.pacer.After(kRetry, [this] { Send(); });
  }
  absl::Duration wait;
  {
    absl::MutexLock lock(&mu_);
    // Any answer acknowledges a result.
    if (call.request.has_completed()) {
      field_.tally.NoteResult(call.request.completed().result().has_evaluation());
      lease_.Clear();
    }
    // Another one, or none: what it works on is called off.
    if (call.response.lease().id() != lease_.id()) Adopt(call.response.lease());
    // That it works is said once at the beginning, as a real one does.
    const bool has_said = call.request.executing().lease_id() == lease_.id();
    if (!lease_.id().empty() && has_said) {
      wait = std::clamp(done_time_ - absl::Now(), absl::ZeroDuration(), kInterval);
    }
  }
  if (wait == absl::ZeroDuration()) return Send();
  field_.pacer.After(wait, [this] { Send(); });
}

void SimulatedWorker::Adopt(const v1::Lease& lease) {
  lease_ = lease;
  if (lease_.id().empty()) return;
  const absl::Time now = absl::Now();
  field_.tally.NoteLease(lease_, now);
  if (result_time_ != absl::InfinitePast()) field_.tally.NoteNextLease(now - result_time_);
  result_time_ = absl::InfinitePast();
  done_time_ = now + DrawWork();
}

absl::Duration SimulatedWorker::DrawWork() {
  if (mean_work_ == absl::ZeroDuration() || random_() % 10 == 0) return absl::ZeroDuration();
  return std::uniform_real_distribution<double>(0, 2)(random_) * mean_work_;
}

}  // namespace mtmc::load
