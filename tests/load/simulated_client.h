// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mtmc/v1/artifact.grpc.pb.h"
#include "mtmc/v1/job.grpc.pb.h"
#include "tests/load/field.h"

namespace mtmc::load {

class Turns;

// A client that keeps one job open: uploads a problem of its own, creates a job for it,
// watches it to its end, and begins anew. Each watch is checked: events come once, in
// order, over any outage, and no candidate is finished twice. Every call is made again
// while there is no coordinator. Lives until `field.calls` is cancelled and `field.pacer`
// stopped.
class SimulatedClient {
 public:
  struct Options {
    int number = 0;
    // Streams that watch its job, at least 1.
    int watchers = 1;
    // As Budget.max_trials.
    int trials = 100;
    // As LoadOptions.is_random.
    bool is_random = false;
    int64_t seed = 1;
    // Called when its first job is there.
    std::function<void()> on_first_job;
  };

  // `turns` bounds how many clients create a job at a time.
  SimulatedClient(const Field& field, const std::shared_ptr<grpc::Channel>& channel,
                  const Options& options, Turns& turns);
  ~SimulatedClient();

  void Start();

 private:
  struct Upload;
  struct Creation;
  class Watch;

  void UploadProblem();
  void CreateJob();
  void WatchJob(const std::string& name);
  void OnWatchEnd();
  // True if the call is to be made again; a failure is counted.
  bool Retries(const absl::Status& status);

  const Field field_;
  const Options options_;
  Turns& turns_;
  const std::unique_ptr<v1::ArtifactService::Stub> artifacts_;
  const std::unique_ptr<v1::JobService::Stub> jobs_;
  // Only what runs last of one step of the story touches these.
  int num_jobs_ = 0;
  std::string source_;
  v1::CreateJobRequest request_;
  std::vector<std::shared_ptr<Watch>> watches_;
  std::atomic<int> open_watches_ = 0;
};

}  // namespace mtmc::load
