// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/store/job_store.h"

namespace mtmc::store {

// Records in one SQLite file, through SOCI. One connection, used by one thread
// at a time: SQLite has one writer anyhow, and a commit takes well under a
// millisecond without the disk's own wait.
class SqliteJobStore final : public JobStore {
 public:
  struct Options {
    // Behaviour. True: a commit waits for the disk (synchronous=FULL) and
    // survives a power failure. False: it is in the kernel's hands
    // (synchronous=NORMAL) and survives only the death of the process, by any
    // signal; for tests.
    bool survives_power_loss = true;
    // Most bytes of the database; 0 means what the disk has.
    int64_t max_bytes = 0;
  };

  // Opens or makes the database at `path` and brings its schema up to date.
  // FAILED_PRECONDITION with reason STORE_TOO_NEW when a later version of this
  // program wrote it.
  static absl::StatusOr<std::unique_ptr<SqliteJobStore>> Open(const std::string& path,
                                                              const Options& options);

  ~SqliteJobStore() override;

  absl::Status Commit(const Write& write) override;
  absl::StatusOr<v1::Job> LookupJob(const std::string& name) override;
  absl::StatusOr<JobPage> ListJobs(const JobQuery& query) override;
  absl::StatusOr<v1::Candidate> LookupCandidate(const std::string& name) override;
  absl::StatusOr<CandidatePage> ListCandidates(const CandidateQuery& query) override;
  absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(const std::string& job, int64_t after,
                                                       int limit) override;
  absl::StatusOr<std::optional<EvaluationRecord>> FindEvaluation(
      const std::string& fingerprint) override;
  absl::StatusOr<std::optional<v1::Inspection>> FindInspection(const std::string& key) override;
  absl::StatusOr<Fleet> ReadFleet() override;

 private:
  struct Connection;

  explicit SqliteJobStore(std::unique_ptr<Connection> connection);

  const std::unique_ptr<Connection> connection_;
};

}  // namespace mtmc::store
