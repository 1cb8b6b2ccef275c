// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/security.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/job.pb.h"
#include "mtmc/v1/quota.pb.h"
#include "mtmc/v1/record.pb.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::client {

// The coordinator as blocking calls, each with a deadline. Errors keep their
// reason (`rpc::ErrorReason`). Lists come whole: paging happens inside. A service that is
// full or stops is called again for up to a minute (PatientCall).
// Thread-safe.
class Api {
 public:
  // Connects when first used. `endpoint` is HOST:PORT.
  explicit Api(const std::string& endpoint, const rpc::ChannelSecurity& security = {});
  ~Api();

  // Whether a coordinator serves there; blocks up to `timeout`.
  bool IsServing(absl::Duration timeout);

  absl::StatusOr<v1::Job> CreateJob(const v1::CreateJobRequest& request);
  absl::StatusOr<v1::Job> GetJob(const std::string& name);
  absl::StatusOr<std::vector<v1::Job>> ListJobs(const std::string& parent, int limit,
                                                const std::string& filter = "",
                                                const std::string& order_by = "");
  absl::StatusOr<v1::Job> CancelJob(const std::string& name);
  absl::StatusOr<v1::Job> PauseJob(const std::string& name);
  absl::StatusOr<v1::Job> ResumeJob(const std::string& name);
  absl::Status DeleteJob(const std::string& name);

  // Calls `observe` with each event after `cursor`, until the job has ended,
  // `observe` returns false, or the stream breaks (UNAVAILABLE: call again from
  // the last sequence seen).
  absl::Status WatchJob(const std::string& name, int64_t cursor,
                        const std::function<bool(const v1::JobEvent&)>& observe);

  // Ends a WatchJob of another thread with CANCELLED.
  void StopWatching();

  absl::StatusOr<v1::Candidate> GetCandidate(const std::string& name);
  absl::StatusOr<std::vector<v1::Candidate>> ListCandidates(
      const std::string& job, v1::CandidateView view = v1::CANDIDATE_VIEW_FULL,
      const std::string& filter = "");

  absl::StatusOr<v1::Digest> Upload(const std::string& bytes);
  absl::StatusOr<std::string> Download(const v1::Digest& digest);

  absl::StatusOr<std::vector<v1::TunedRecord>> ListRecords(const std::string& parent,
                                                           const std::string& filter = "");
  // In as many calls as it takes; those before one that fails stay.
  absl::Status ImportRecords(const std::string& parent,
                             const std::vector<v1::TunedRecord>& records);
  absl::Status DeleteRecord(const std::string& name);

  absl::StatusOr<std::vector<v1::Quota>> ListQuotas(const std::string& filter = "");
  absl::StatusOr<v1::Quota> GetQuota(const std::string& name);
  absl::StatusOr<v1::Quota> UpdateQuota(const v1::UpdateQuotaRequest& request);

  absl::StatusOr<std::vector<v1::Worker>> ListWorkers(const std::string& filter = "");
  absl::StatusOr<v1::Worker> DrainWorker(const std::string& name, bool is_undrain);

 private:
  struct Stubs;
  const std::unique_ptr<Stubs> stubs_;
};

}  // namespace mtmc::client
