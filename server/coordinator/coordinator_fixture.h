// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/executor.h"
#include "common/base/temp_dir.h"
#include "common/metrics/metrics.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/fake_parts.h"
#include "server/store/fake_job_store.h"
#include "server/store/file_artifact_store.h"

namespace mtmc::coordinator {

inline constexpr char kJob[] = "projects/p/jobs/job";
inline constexpr char kRequestId[] = "0b8b1c52-25e5-4d4a-b6a8-0a4a6a2f4f52";
// For a condition that a loaded host reaches in milliseconds.
inline constexpr absl::Duration kPatience = absl::Seconds(20);

// A coordinator with a store, a coder, a policy and a worker, in one process. It may be
// stopped and started again: `memory` is what a disk would be.
struct World {
  base::RealClock real_clock;
  // Another one may be set before the start.
  const base::Clock* clock = &real_clock;
  base::TempDir folder = *base::TempDir::Create("world");
  store::FakeJobStore memory;
  CrashingStore store{memory};
  // Another one may be set before the start.
  std::unique_ptr<store::ArtifactStore> artifacts =
      *store::FileArtifactStore::Open(folder.path().string(), {});
  FakeCoder coder;
  FakePolicy policy;
  FakeWorker worker;
  metrics::Registry registry{"test"};
  CoordinatorMetrics metrics{registry};
  base::Executor executor{{.name = "test"}};
  JobFeed feed{store, executor};
  std::unique_ptr<Coordinator> coordinator;
  absl::Duration patience = LeaseManager::Options().patience;
  absl::Duration retention = Coordinator::Options().retention.jobs;
  absl::Duration quota_slice = search::Search::Options().quota_slice;
  bool shares_across_projects = false;
  absl::Duration artifact_retention = Coordinator::Options().retention.artifacts;
  absl::Duration log_retention = Coordinator::Options().retention.logs;

  ~World();

  void Start();
  void StartWithWorker();
  void Stop();

  // To make the job kJob by `strategy`, with few steps and trials.
  v1::CreateJobRequest Request(const std::string& strategy = "mtmc");
  void Create(const v1::CreateJobRequest& request);

  // Waits for a condition on what is recorded; fails the test after kPatience.
  void Await(const std::function<bool(const v1::Job&)>& condition);
  // The job as it ended.
  v1::Job AwaitEnd();
  // Lets the loop and its timers run for a moment of real time.
  void Turn();

  // Of kJob, as they are recorded.
  std::vector<v1::Candidate> Candidates();
  std::vector<v1::JobEvent> Events();
  // Whether a notice among the events has that part.
  bool HasNotice(const std::string& part);
};

// What must not depend on crashes: everything but times.
std::string Essence(World& world);

// Checks that events are gapless and tell each fate once.
void CheckEvents(World& world);

}  // namespace mtmc::coordinator
