// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/trace/span.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/job.pb.h"
#include "server/search/lineage.h"

namespace mtmc::search {

// The traces of one job's trials, each from the question what to try to the record of its
// end:
//
//   trial
//     propose     what may be done, and the choice
//     code        the program is written; where the coder is asked
//     evaluate    a worker is asked, whose spans are below
//
// A decision to stop is a trace of its own, `decision`, and so is a later `confirmation`. A trial
// that began before this process did gets a new trace. Costs nothing while nothing is traced.
// Called on the event loop. Private to this folder.
class TrialTrace {
 public:
  explicit TrialTrace(std::string job) : job_(std::move(job)) {}

  // A decision is to be made that may become `trial`.
  void Begin(int trial);

  // `trial`, which is over, is confirmed.
  void BeginConfirmation(int trial);

  // `trial` goes on, in its trace if it has one.
  void GoOn(int trial);

  // Something was recorded: ends the trace if its trial, or its decision, is over.
  void Settle(const v1::Job& job, const Lineage& lineage);

  // Whatever is going on is over: the job ends, or a trial is confirmed.
  void End() { root_.End(); }

  // Whatever is asked for the trial now.
  const base::TraceContext& context() const;

  // A part of the trial, for as long as this lives; one at a time.
  class Step {
   public:
    Step(TrialTrace& trace, std::string_view name, trace::SpanKind kind);

    ~Step() { *current_ = {}; }

    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    // Shared, because the frame of a coroutine may outlive its search.
    const std::shared_ptr<base::TraceContext> current_;
    const trace::Span span_;
  };

 private:
  void Start(std::string_view name, int trial);
  void NameAfter(const v1::Candidate& candidate);
  void Conclude(const v1::Job& job, const v1::Candidate& candidate);

  const std::string job_;
  int trial_ = 0;
  bool has_name_ = false;
  trace::Span root_;
  // Of the step; not valid between two.
  const std::shared_ptr<base::TraceContext> current_ = std::make_shared<base::TraceContext>();
};

}  // namespace mtmc::search
