// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/crash_parts.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/config/version.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "common/testing/status_matchers.h"
#include "mtmc/v1/artifact.grpc.pb.h"
#include "mtmc/v1/job.grpc.pb.h"
#include "mtmc/v1/worker.grpc.pb.h"

namespace mtmc::coordinator {
namespace {

using testing::IsOk;

// For what takes a loaded host seconds.
constexpr absl::Duration kPatience = absl::Seconds(100);

// Repeats a call while it is UNAVAILABLE, as clients do.
template <class Call>
absl::Status Rpc(const Call& call) {
  const absl::Time deadline = absl::Now() + kPatience;
  absl::Status status;
  do {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(deadline));
    context.set_wait_for_ready(true);
    status = rpc::FromGrpc(call(context));
  } while (absl::IsUnavailable(status) && absl::Now() < deadline);
  return status;
}

}  // namespace

grpc::Status CrashGateway::CreateProgram(grpc::ServerContext* /*context*/,
                                         const v1::CreateProgramRequest* request,
                                         v1::CreateProgramResponse* response) {
  coder_.CreateProgram(std::make_shared<const v1::CreateProgramRequest>(*request),
                       [&](auto result) { *response = *std::move(result); });
  return grpc::Status::OK;
}

grpc::Status CrashGateway::ListActions(grpc::ServerContext* /*context*/,
                                       const v1::ListActionsRequest* request,
                                       v1::ListActionsResponse* response) {
  coder_.ListActions(std::make_shared<const v1::ListActionsRequest>(*request),
                     [&](auto result) { *response = *std::move(result); });
  // So many that the job outlives the kills.
  for (int size = 0; size < 2 * kCrashTrials; ++size) {
    auto* action = response->add_actions();
    action->set_type(v1::Action::TYPE_TILE);
    action->set_text(absl::StrCat("tile ", size));
  }
  return grpc::Status::OK;
}

grpc::Status CrashGateway::ApplyAction(grpc::ServerContext* /*context*/,
                                       const v1::ApplyActionRequest* request,
                                       v1::ApplyActionResponse* response) {
  coder_.ApplyAction(std::make_shared<const v1::ApplyActionRequest>(*request),
                     [&](auto result) { *response = *std::move(result); });
  return grpc::Status::OK;
}

CrashWorker::CrashWorker(const std::string& endpoint, const std::string& name)
    : thread_([this, endpoint, name](const std::stop_token& stop) { Run(endpoint, name, stop); }) {}

std::map<std::string, int> CrashWorker::executions() const {
  absl::MutexLock lock(&mu_);
  return executions_;
}

void CrashWorker::Run(const std::string& endpoint, const std::string& name,
                      const std::stop_token& stop) {
  auto stub = v1::LeaseService::NewStub(rpc::MakeChannel(endpoint));
  v1::SynchronizeRequest request;
  request.mutable_worker()->set_name(name);
  request.mutable_worker()->set_version(std::string(config::Version()));
  request.mutable_worker()->mutable_device()->set_product("cpu");
  request.mutable_worker()->mutable_device()->add_dialects(v1::DIALECT_OPENCL);
  request.set_instance_id("only");
  request.mutable_idle();
  while (!stop.stop_requested()) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
    v1::SynchronizeResponse response;
    if (!stub->Synchronize(&context, request, &response).ok()) {
      // A fresh channel connects at once instead of after its back-off.
      stub = v1::LeaseService::NewStub(rpc::MakeChannel(endpoint));
      continue;
    }
    request.mutable_idle();
    if (!response.has_lease()) continue;
    request.mutable_completed()->set_lease_id(response.lease().id());
    *request.mutable_completed()->mutable_result() = FakeWork(response.lease());
    absl::MutexLock lock(&mu_);
    const v1::Lease& lease = response.lease();
    ++executions_[lease.candidate().empty() ? lease.job() : lease.candidate()];
  }
}

CrashProcess::CrashProcess(std::string gateway, std::string folder, std::vector<std::string> flags)
    : gateway_(std::move(gateway)), folder_(std::move(folder)), flags_(std::move(flags)) {
  Start();
}

void CrashProcess::Start() {
  const std::string ready = folder_ + "/ready.json";
  std::filesystem::remove(ready);
  std::vector<std::string> command = {std::string(MTMC_BINARY_DIR) + "/mtmc-coordinator",
                                      "--listen",
                                      endpoint_,
                                      "--http",
                                      "",
                                      "--ready-file",
                                      ready,
                                      "--gateway",
                                      gateway_,
                                      "--policy",
                                      "127.0.0.1:1",
                                      "--log-level",
                                      "error"};
  command.insert(command.end(), flags_.begin(), flags_.end());
  auto started = base::Subprocess::Start({.argv = command});
  REQUIRE_THAT(started.status(), IsOk());
  process_ = std::make_unique<base::Subprocess>(*std::move(started));
  const absl::Time deadline = absl::Now() + kPatience;
  while (!base::ReadFile(ready).ok()) {
    REQUIRE(absl::Now() < deadline);
    REQUIRE_FALSE(process_->Wait(absl::Now() + absl::Milliseconds(2)).ok());
  }
  const std::string text = *base::ReadFile(ready);
  const auto begin = text.find("127.0.0.1:");
  endpoint_ = text.substr(begin, text.find('"', begin) - begin);
}

void CrashProcess::KillAfter(absl::Duration delay) {
  // It does not end by itself, so this is the delay.
  CHECK_FALSE(process_->Wait(absl::Now() + delay).ok());
  process_->Kill();
  CHECK(process_->Wait().ok());
}

void CreateCrashJob(const std::string& endpoint) {
  const std::shared_ptr<grpc::Channel> channel = rpc::MakeChannel(endpoint);
  const std::string source = "class Model: pass";
  v1::UploadArtifactRequest part;
  part.mutable_digest()->set_sha256(base::Sha256(source).sha256_hex);
  part.mutable_digest()->set_size_bytes(static_cast<int64_t>(source.size()));
  part.set_chunk(source);
  REQUIRE_THAT(Rpc([&](grpc::ClientContext& context) {
                 v1::UploadArtifactResponse response;
                 auto writer =
                     v1::ArtifactService::NewStub(channel)->UploadArtifact(&context, &response);
                 writer->Write(part);
                 writer->WritesDone();
                 return writer->Finish();
               }),
               IsOk());
  v1::CreateJobRequest request;
  request.set_parent("projects/p");
  request.set_job_id("job");
  *request.mutable_job()->mutable_problem()->mutable_source() = part.digest();
  request.mutable_job()->mutable_search()->mutable_random()->set_max_steps(4);
  request.mutable_job()->mutable_budget()->set_max_trials(kCrashTrials);
  REQUIRE_THAT(Rpc([&](grpc::ClientContext& context) {
                 v1::CreateJobResponse response;
                 return v1::JobService::NewStub(channel)->CreateJob(&context, request, &response);
               }),
               IsOk());
}

std::vector<v1::JobEvent> WatchCrashJob(const std::string& endpoint) {
  std::vector<v1::JobEvent> events;
  const absl::Status status = Rpc([&](grpc::ClientContext& context) {
    v1::WatchJobRequest request;
    request.set_name(kCrashJob);
    if (!events.empty()) request.set_cursor(events.back().sequence());
    const auto stub = v1::JobService::NewStub(rpc::MakeChannel(endpoint));
    auto reader = stub->WatchJob(&context, request);
    for (v1::WatchJobResponse response; reader->Read(&response);) {
      events.push_back(response.event());
    }
    return reader->Finish();
  });
  CHECK_THAT(status, IsOk());
  return events;
}

void CheckCrashEvents(const std::vector<v1::JobEvent>& events) {
  std::set<std::string> finished;
  int64_t sequence = 0;
  for (const v1::JobEvent& event : events) {
    CHECK(event.sequence() == ++sequence);
    const auto state = event.candidate().state();
    if (state == v1::Candidate::STATE_EVALUATED || state == v1::Candidate::STATE_REJECTED) {
      CHECK(finished.insert(event.candidate().name()).second);
    }
  }
  CHECK(finished.size() == kCrashTrials + 1);
  REQUIRE_FALSE(events.empty());
  CHECK(events.back().job().state() == v1::Job::STATE_SUCCEEDED);
}

}  // namespace mtmc::coordinator
