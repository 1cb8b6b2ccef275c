// SPDX-License-Identifier: Apache-2.0
//
// The real mtmc-coordinator, killed with SIGKILL at random moments while a job
// runs, against a gateway and a worker in this process.
#include <grpcpp/grpcpp.h>

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/subprocess.h"
#include "common/base/temp_dir.h"
#include "common/config/version.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "common/testing/status_matchers.h"
#include "mtmc/v1/artifact.grpc.pb.h"
#include "mtmc/v1/candidate.grpc.pb.h"
#include "mtmc/v1/job.grpc.pb.h"
#include "mtmc/v1/micro_coding.grpc.pb.h"
#include "mtmc/v1/worker.grpc.pb.h"
#include "server/coordinator/fake_parts.h"

namespace mtmc::coordinator {
namespace {

using testing::IsOk;

constexpr char kJob[] = "projects/p/jobs/job";
constexpr int kKills = 50;
constexpr int kTrials = 100;

// The fake coder behind the gateway's wire.
class Gateway final : public v1::MicroCodingService::Service {
 public:
  grpc::Status CreateProgram(grpc::ServerContext*, const v1::CreateProgramRequest* request,
                             v1::CreateProgramResponse* response) override {
    coder_.CreateProgram(*request, [&](auto result) { *response = *std::move(result); });
    return grpc::Status::OK;
  }

  grpc::Status ListActions(grpc::ServerContext*, const v1::ListActionsRequest* request,
                           v1::ListActionsResponse* response) override {
    coder_.ListActions(*request, [&](auto result) { *response = *std::move(result); });
    // So many that the job outlives the kills.
    for (int size = 0; size < 2 * kTrials; ++size) {
      auto* action = response->add_actions();
      action->set_type(v1::Action::TYPE_TILE);
      action->set_text(absl::StrCat("tile ", size));
    }
    return grpc::Status::OK;
  }

  grpc::Status ApplyAction(grpc::ServerContext*, const v1::ApplyActionRequest* request,
                           v1::ApplyActionResponse* response) override {
    coder_.ApplyAction(*request, [&](auto result) { *response = *std::move(result); });
    return grpc::Status::OK;
  }

 private:
  FakeCoder coder_;
};

// A worker that keeps to the protocol over any outage.
class Worker {
 public:
  explicit Worker(const std::string& endpoint)
      : thread_([this, endpoint](const std::stop_token& stop) { Run(endpoint, stop); }) {}

  std::map<std::string, int> executions() const {
    absl::MutexLock lock(&mu_);
    return executions_;
  }

 private:
  void Run(const std::string& endpoint, const std::stop_token& stop) {
    auto stub = v1::LeaseService::NewStub(rpc::MakeChannel(endpoint));
    v1::SynchronizeRequest request;
    request.mutable_worker()->set_name("workers/w");
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

  mutable absl::Mutex mu_;
  std::map<std::string, int> executions_ ABSL_GUARDED_BY(mu_);
  std::jthread thread_;
};

// The coordinator as a process that can be killed and started again.
class Process {
 public:
  Process(std::string gateway, std::string folder)
      : gateway_(std::move(gateway)), folder_(std::move(folder)) {
    Start();
  }

  // Until it serves. The first start chooses the port for all.
  void Start() {
    const std::string ready = folder_ + "/ready.json";
    std::filesystem::remove(ready);
    auto started = base::Subprocess::Start(
        {.argv = {std::string(MTMC_BINARY_DIR) + "/mtmc-coordinator", "--listen", endpoint_,
                  "--http", "", "--data-dir", folder_ + "/data", "--ready-file", ready, "--gateway",
                  gateway_, "--policy", "127.0.0.1:1", "--log-level", "error"}});
    REQUIRE_THAT(started.status(), IsOk());
    process_ = std::make_unique<base::Subprocess>(*std::move(started));
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (!base::ReadFile(ready).ok()) {
      REQUIRE(absl::Now() < deadline);
      REQUIRE_FALSE(process_->Wait(absl::Now() + absl::Milliseconds(2)).ok());
    }
    const std::string text = *base::ReadFile(ready);
    const auto begin = text.find("127.0.0.1:");
    endpoint_ = text.substr(begin, text.find('"', begin) - begin);
  }

  void KillAfter(absl::Duration delay) {
    // It does not end by itself, so this is the delay.
    CHECK_FALSE(process_->Wait(absl::Now() + delay).ok());
    process_->Kill();
    CHECK(process_->Wait().ok());
  }

  const std::string& endpoint() const { return endpoint_; }

 private:
  const std::string gateway_;
  const std::string folder_;
  std::string endpoint_ = "127.0.0.1:0";
  std::unique_ptr<base::Subprocess> process_;
};

template <class Call>
absl::Status Rpc(const Call& call) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
  context.set_wait_for_ready(true);
  return rpc::FromGrpc(call(context));
}

void CreateJob(const std::shared_ptr<grpc::Channel>& channel) {
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
  request.mutable_job()->mutable_search()->set_strategy("random");
  request.mutable_job()->mutable_search()->set_max_steps(4);
  request.mutable_job()->mutable_budget()->set_max_trials(kTrials);
  REQUIRE_THAT(Rpc([&](grpc::ClientContext& context) {
                 v1::CreateJobResponse response;
                 return v1::JobService::NewStub(channel)->CreateJob(&context, request, &response);
               }),
               IsOk());
}

// Every event of the job, after its end.
std::vector<v1::JobEvent> Watch(const std::shared_ptr<grpc::Channel>& channel) {
  std::vector<v1::JobEvent> events;
  const auto stub = v1::JobService::NewStub(channel);
  REQUIRE_THAT(Rpc([&](grpc::ClientContext& context) {
                 v1::WatchJobRequest request;
                 request.set_name(kJob);
                 auto reader = stub->WatchJob(&context, request);
                 for (v1::WatchJobResponse response; reader->Read(&response);) {
                   events.push_back(response.event());
                 }
                 return reader->Finish();
               }),
               IsOk());
  return events;
}

}  // namespace

TEST_CASE("mtmc-coordinator loses and doubles no evaluation over 50 kills", "[coordinator]") {
  Gateway gateway;
  const auto server = rpc::RpcServer::Create({.services = {&gateway}});
  REQUIRE_THAT(server.status(), IsOk());
  const auto folder = *base::TempDir::Create("crash");
  Process coordinator((*server)->address(), folder.path().string());
  CreateJob(rpc::MakeChannel(coordinator.endpoint()));
  const Worker worker(coordinator.endpoint());
  std::mt19937 random(7);
  std::uniform_int_distribution<int> delay_us(0, 30'000);

  for (int kill = 0; kill < kKills; ++kill) {
    coordinator.KillAfter(absl::Microseconds(delay_us(random)));
    coordinator.Start();
  }
  const auto events = Watch(rpc::MakeChannel(coordinator.endpoint()));

  std::set<std::string> finished;
  int64_t sequence = 0;
  for (const v1::JobEvent& event : events) {
    CHECK(event.sequence() == ++sequence);
    const auto state = event.candidate().state();
    if (state == v1::Candidate::STATE_EVALUATED || state == v1::Candidate::STATE_REJECTED) {
      CHECK(finished.insert(event.candidate().name()).second);
    }
  }
  CHECK(finished.size() == kTrials + 1);
  REQUIRE_FALSE(events.empty());
  CHECK(events.back().job().state() == v1::Job::STATE_SUCCEEDED);
  for (const auto& [name, count] : worker.executions()) {
    INFO(name);
    CHECK(count == 1);
  }
}

}  // namespace mtmc::coordinator
