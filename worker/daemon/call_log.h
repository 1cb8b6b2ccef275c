// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "worker/verify/party.h"

namespace google::protobuf {
class Message;
}

namespace mtmc::worker {

// How often the children were asked for what, and how long that took: where the
// time of an evaluation goes that the device does not spend. Thread-safe.
class CallLog {
 public:
  struct Total {
    int calls = 0;
    absl::Duration time;
  };

  // By child and request, such as `runner.execute`.
  using Totals = std::map<std::string, Total>;

  void Add(std::string_view child, const google::protobuf::Message& request, absl::Duration time);

  // What was added since the last Take().
  Totals Take();

 private:
  absl::Mutex mu_;
  Totals totals_ ABSL_GUARDED_BY(mu_);
};

// A party whose calls are written down.
template <typename Request, typename Response>
class LoggedParty final : public Party<Request, Response> {
 public:
  // Borrows all; `child` names it in the log.
  LoggedParty(Party<Request, Response>& party, const char* child, CallLog& log)
      : party_(party), child_(child), log_(log) {}

  Reply<Response> Call(const Request& request, absl::Duration timeout) override {
    const absl::Time start = absl::Now();
    Reply<Response> reply = party_.Call(request, timeout);
    log_.Add(child_, request, absl::Now() - start);
    return reply;
  }

 private:
  Party<Request, Response>& party_;
  const char* const child_;
  CallLog& log_;
};

}  // namespace mtmc::worker
