// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/subprocess.h"
#include "mtmc/v1/job.pb.h"
#include "mtmc/v1/micro_coding.grpc.pb.h"
#include "server/coordinator/fake_parts.h"

// What surrounds real coordinators that are killed: a gateway, workers and clients in
// the process of the test.
namespace mtmc::coordinator {

inline constexpr char kCrashJob[] = "projects/p/jobs/job";
inline constexpr int kCrashTrials = 100;

// The fake coder behind the gateway's wire.
class CrashGateway final : public v1::MicroCodingService::Service {
 public:
  grpc::Status CreateProgram(grpc::ServerContext* context, const v1::CreateProgramRequest* request,
                             v1::CreateProgramResponse* response) override;
  grpc::Status ListActions(grpc::ServerContext* context, const v1::ListActionsRequest* request,
                           v1::ListActionsResponse* response) override;
  grpc::Status ApplyAction(grpc::ServerContext* context, const v1::ApplyActionRequest* request,
                           v1::ApplyActionResponse* response) override;

 private:
  FakeCoder coder_;
};

// A worker that keeps to the protocol over any outage. `endpoint` may name several
// coordinators (ipv4:HOST:PORT,HOST:PORT).
class CrashWorker {
 public:
  explicit CrashWorker(const std::string& endpoint, const std::string& name = "workers/w");

  // How often each candidate (or job, for an inspection) was worked on.
  std::map<std::string, int> executions() const;

 private:
  void Run(const std::string& endpoint, const std::string& name, const std::stop_token& stop);

  mutable absl::Mutex mu_;
  std::map<std::string, int> executions_ ABSL_GUARDED_BY(mu_);
  std::jthread thread_;
};

// A coordinator as a process that can be killed and started again at the same port.
class CrashProcess {
 public:
  // `flags` say where it keeps what survives it; `folder` is its own.
  CrashProcess(std::string gateway, std::string folder, std::vector<std::string> flags);

  // Until it serves. The first start chooses the port for all.
  void Start();

  void KillAfter(absl::Duration delay);

  // HOST:PORT.
  const std::string& endpoint() const { return endpoint_; }

 private:
  const std::string gateway_;
  const std::string folder_;
  const std::vector<std::string> flags_;
  std::string endpoint_ = "127.0.0.1:0";
  std::unique_ptr<base::Subprocess> process_;
};

// Creates kCrashJob with kCrashTrials trials.
void CreateCrashJob(const std::string& endpoint);

// Every event of the job until its end. A lost stream is taken up where it was.
std::vector<v1::JobEvent> WatchCrashJob(const std::string& endpoint);

// That events are gapless, tell each fate once, and end with a job that succeeded after
// all its trials.
void CheckCrashEvents(const std::vector<v1::JobEvent>& events);

}  // namespace mtmc::coordinator
