// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/search/await.h"
#include "server/search/journal.h"
#include "server/search/search.h"
#include "server/store/quota.h"

namespace mtmc::search {

// What one search reserves of its project's quota before it uses a worker's device or a
// language model. Reservations are written before anything is used, but for the next slice of
// an evaluation that runs on, which is written while it does; the next record of
// the job counts what was used and gives the rest back (Journal). Where the project has no
// limit nothing is reserved.
//
// Device time is reserved in slices: the first before a worker is asked, the next when the
// evaluation runs that long. When there is none left, `on_used_up` ends the job.
//
// A resource; every call is made on the event loop. Private to this folder.
class Allowance {
 public:
  // All arguments outlive it, and what `tools` name.
  Allowance(const Search::Options& options, const SearchTools& tools, Journal& journal,
            Interruption& interruption)
      : options_(options), tools_(tools), journal_(journal), interruption_(interruption) {}

  // Waits, with a notice in the event log, while other jobs have reserved what is missing.
  // RESOURCE_EXHAUSTED with reason QUOTA_EXCEEDED when it is used up for good, CANCELLED
  // after an interruption.
  boost::asio::awaitable<absl::Status> ReserveDeviceTime();
  boost::asio::awaitable<absl::Status> ReserveTokens();

  // Whether the last reservation was not made at once: what was known before may be old.
  bool has_waited() const { return has_waited_; }

  // How many tokens the next call may take; nothing is no limit.
  std::optional<int64_t> tokens() const { return tokens_; }

  // A worker has begun the evaluation with that key; once more if it was lost and another
  // one has.
  void BeginDeviceTime(const std::string& key);

  // The evaluation is over.
  void EndDeviceTime();

  // The evaluation is about to be abandoned.
  void CallOff();

  // How long a worker was at what was called off; no longer than was reserved.
  absl::Duration called_off() const { return called_off_; }

  // Called when an evaluation has used up what the project had.
  std::function<void()> on_used_up;

 private:
  boost::asio::awaitable<absl::Status> Reserve(store::QuotaResource resource, int64_t wanted,
                                               int64_t least, std::optional<int64_t>& held);
  absl::Status Hold(store::QuotaResource resource, int64_t amount);
  void Arm(absl::Duration delay);
  void Extend();

  const Search::Options options_;
  const SearchTools tools_;
  Journal& journal_;
  Interruption& interruption_;
  // What is held; nothing where there is no limit.
  std::optional<int64_t> microseconds_;
  std::optional<int64_t> tokens_;
  bool has_waited_ = false;
  std::optional<absl::Time> begin_;
  std::string key_;
  absl::Duration called_off_;
  // Lives as long as the timer of the slice counts.
  std::shared_ptr<int> alarm_;
};

}  // namespace mtmc::search
