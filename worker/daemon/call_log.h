// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/trace/span.h"
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

  void Add(const std::string& call, absl::Duration time);

  // What was added since the last Take().
  Totals Take();

  // Takes all and writes it to the log of the process, as what `task` spent: a debug record.
  void Tell(const std::string& task);

 private:
  absl::Mutex mu_;
  Totals totals_ ABSL_GUARDED_BY(mu_);
};

// `runner.execute`, for a request to that child.
std::string CallName(std::string_view child, const google::protobuf::Message& request);

// `died`, `timed_out` and so on; `answered` for an answer.
template <typename Ending>
const char* EndingWord(Ending ending);

// A party whose calls are written down, and are spans of the thread's trace.
template <typename Request, typename Response>
class LoggedParty final : public Party<Request, Response> {
 public:
  // Borrows all; `child` names it in the log.
  LoggedParty(Party<Request, Response>& party, const char* child, CallLog& log)
      : party_(party), child_(child), log_(log) {}

  Reply<Response> Call(const Request& request, absl::Duration timeout) override {
    const std::string name = CallName(child_, request);
    trace::Span span = trace::Span::Start(name, {.kind = trace::SpanKind::kClient});
    const absl::Time start = absl::Now();
    Reply<Response> reply = party_.Call(request, timeout);
    log_.Add(name, absl::Now() - start);
    // Not what the child has said, which may be the user's.
    if (!reply.is_answered()) span.Fail(EndingWord(reply.ending));
    return reply;
  }

 private:
  Party<Request, Response>& party_;
  const char* const child_;
  CallLog& log_;
};

template <typename Ending>
const char* EndingWord(Ending ending) {
  switch (ending) {
    case Ending::kAnswered:
      return "answered";
    case Ending::kDied:
      return "died";
    case Ending::kKilled:
      return "killed";
    case Ending::kOutOfMemory:
      return "out_of_memory";
    case Ending::kTimedOut:
      return "timed_out";
    case Ending::kCancelled:
      return "cancelled";
    case Ending::kUnavailable:
      return "unavailable";
  }
  return "unknown";
}

}  // namespace mtmc::worker
