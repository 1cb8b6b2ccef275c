// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/job.pb.h"
#include "server/search/allowance.h"
#include "server/search/await.h"
#include "server/search/backends.h"
#include "server/search/deferral.h"
#include "server/search/ending.h"
#include "server/search/journal.h"
#include "server/search/lineage.h"
#include "server/search/patient_coder.h"
#include "server/search/search.h"
#include "server/search/strategy.h"
#include "server/search/trial_trace.h"

namespace mtmc::search {

// What the parts of one search share: its job, its tools, and why it ends. Every
// call is made on the event loop. Private to this folder.
struct SearchRun {
  SearchRun(std::string job_name, const Search::Options& search_options,
            const SearchTools& search_tools);
  SearchRun(const SearchRun&) = delete;
  SearchRun& operator=(const SearchRun&) = delete;

  const std::string name;
  const Search::Options options;
  const SearchTools tools;
  Interruption interruption;
  Journal journal;
  TrialTrace trace;
  Allowance allowance;
  PatientCoder coder;
  // The journal's: the job with the changes of the next record, and what is
  // recorded of its trials.
  v1::Job& job = journal.job();
  const Lineage& lineage = journal.lineage();
  // Made when the job is loaded.
  std::unique_ptr<const Strategy> strategy;
  // Key of the work that a worker is asked for; empty when there is none.
  std::string submitted;
  // Set by whichever part finds that nothing is left to do.
  std::optional<Ending> ending;

  const v1::Candidate& CandidateOf(int trial) const {
    return lineage.candidates[static_cast<size_t>(trial)];
  }

  // See deferral.h.
  bool has_time_to_defer() const {
    return HasTimeToDefer(lineage, journal.wall_time_used(), journal.wall_time_left());
  }

  // The text and the schedule of a candidate that has them. Waits for a store that is
  // away; CANCELLED after an interruption.
  boost::asio::awaitable<absl::StatusOr<v1::Program>> ReadProgram(const v1::Candidate& candidate);

  // Several parts of a trial want the same program: what was read or stored last is at hand until
  // a worker is waited for.
  void KeepText(const v1::Digest& digest, std::string text);

  // `key`, of fingerprint.h, as it stands for work of this job: of its project alone, unless
  // projects share.
  std::string KeyOf(const std::string& key) const;

  // Work for `candidate`, or for the problem if it is empty, without its task.
  Work NewWork(const std::string& candidate);

  // Waits until a worker has done it; CANCELLED after an interruption.
  boost::asio::awaitable<absl::StatusOr<v1::LeaseResult>> Submit(Work work);

 private:
  boost::asio::awaitable<absl::StatusOr<std::string>> ReadText(v1::Digest digest);

  struct Text {
    std::string sha256;
    std::string text;
  };

  std::optional<Text> kept_;
};

}  // namespace mtmc::search
