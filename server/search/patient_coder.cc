// SPDX-License-Identifier: Apache-2.0
#include "server/search/patient_coder.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/error.h"
#include "common/rpc/retry_rule.h"
#include "server/search/known_step.h"
#include "server/search/macro_step.h"
#include "server/search/shared_graph.h"

namespace mtmc::search {

using boost::asio::awaitable;

template <class Request>
Asked<Request> PatientCoder::WithContext(std::unique_ptr<Request> request) {
  *request->mutable_context() = Context();
  return WithGraph(journal_.graph(), std::move(request),
                   [](Request& with) -> v1::CodingContext& { return *with.mutable_context(); });
}

awaitable<absl::StatusOr<v1::CreateProgramResponse>> PatientCoder::CreateProgram() {
  const absl::Status reserved = co_await ReserveTokens();
  if (!reserved.ok()) co_return reserved;
  const auto request = WithContext(std::make_unique<v1::CreateProgramRequest>());
  co_return co_await Write<v1::CreateProgramResponse>(
      [this, &request](Done<v1::CreateProgramResponse> done) {
        tools_.coder.CreateProgram(request, std::move(done));
      });
}

awaitable<absl::StatusOr<v1::ListActionsResponse>> PatientCoder::ListActions(
    const v1::Candidate& candidate, const v1::Program& program) {
  auto list = std::make_unique<v1::ListActionsRequest>();
  *list->mutable_program() = program;
  *list->mutable_evaluation() = candidate.evaluation();
  const auto request = WithContext(std::move(list));
  co_return co_await Call<v1::ListActionsResponse>(
      [this, &request](Done<v1::ListActionsResponse> done) {
        tools_.coder.ListActions(request, std::move(done));
      });
}

awaitable<absl::StatusOr<v1::ApplyActionResponse>> PatientCoder::ApplyAction(
    const v1::Candidate& candidate, const v1::Program& program, const v1::Action& action) {
  const absl::Status reserved = co_await ReserveTokens();
  if (!reserved.ok()) co_return reserved;
  auto apply = std::make_unique<v1::ApplyActionRequest>();
  *apply->mutable_program() = program;
  *apply->mutable_action() = action;
  *apply->mutable_evaluation() = candidate.evaluation();
  const auto request = WithContext(std::move(apply));
  co_return co_await Write<v1::ApplyActionResponse>(
      [this, &request](Done<v1::ApplyActionResponse> done) {
        tools_.coder.ApplyAction(request, std::move(done));
      });
}

template <class Response>
awaitable<absl::StatusOr<Response>> PatientCoder::Write(std::function<void(Done<Response>)> start) {
  is_writing_ = true;
  const TrialTrace::Step step(trace_, "code", trace::SpanKind::kInternal);
  auto response = co_await Call<Response>(std::move(start));
  is_writing_ = false;
  co_return response;
}

template <class Response>
awaitable<absl::StatusOr<Response>> PatientCoder::Call(std::function<void(Done<Response>)> start) {
  rpc::RetryRule retry({.first_pause = options_.min_backoff, .max_pause = options_.max_backoff});
  bool was_down = false;
  bool is_writing = false;
  int late_calls = 0;
  while (true) {
    auto response =
        co_await Await<Response>(tools_.loop, interruption_, [this, &start](Done<Response> done) {
          const base::TraceScope scope(trace_.context());
          start(std::move(done));
        });
    if (!response.ok()) Settle(response.status());
    const bool is_late = absl::IsDeadlineExceeded(response.status());
    if (is_late) ++late_calls;
    const bool is_passing =
        is_late ? late_calls < options_.max_late_calls : IsPassing(response.status());
    if (is_passing && journal_.is_paused()) interruption_.Set();
    if (!is_passing || interruption_.is_set()) {
      if (was_down && response.ok()) co_await journal_.RecordNotice("the gateway answers again");
      co_return response;
    }
    if (!was_down) {
      co_await journal_.RecordNotice(absl::StrCat(
          "the gateway does not answer, the job waits for it: ", response.status().message()));
    }
    was_down = true;
    is_writing = std::exchange(is_writing_, false);
    co_await WaitFor(tools_.loop, interruption_, retry.PauseAfter(response.status()));
    is_writing_ = is_writing;
  }
}

awaitable<absl::Status> PatientCoder::ReserveTokens() {
  // It needs none, and there are many such calls.
  if (journal_.job().search().coder() == kBuiltinCoder) co_return absl::OkStatus();
  co_return co_await allowance_.ReserveTokens();
}

// A call that failed may have been billed.
void PatientCoder::Settle(const absl::Status& status) {
  const auto metadata = rpc::ErrorMetadata(status);
  const auto billed = [&metadata](const char* what) -> int64_t {
    const auto found = metadata.find(what);
    int64_t value = 0;
    const bool is_number = found != metadata.end() && absl::SimpleAtoi(found->second, &value);
    return is_number ? std::max<int64_t>(value, 0) : 0;
  };
  auto* budget = journal_.job().mutable_budget_use();
  budget->set_tokens(budget->tokens() + billed("tokens"));
  budget->set_cost_micros(budget->cost_micros() + billed("cost_micros"));
}

// Without the graph.
v1::CodingContext PatientCoder::Context() const {
  const v1::Job& job = journal_.job();
  v1::CodingContext context;
  *context.mutable_problem() = job.problem();
  *context.mutable_device() = job.device();
  context.set_dialect(job.dialect());
  context.set_allow_library(job.search().allow_library());
  context.set_coder(job.search().coder());
  context.set_model(job.search().model());
  context.set_job(job.name());
  context.set_creator(job.creator());
  context.set_seed(ForkSeed(job.search().seed(), "coder", journal_.lineage().trials()));
  if (job.budget().max_tokens() > 0) {
    // 0 would be no limit.
    context.set_max_tokens(
        std::max<int64_t>(job.budget().max_tokens() - job.budget_use().tokens(), 1));
  }
  if (const auto held = allowance_.tokens()) {
    context.set_max_tokens(context.max_tokens() > 0 ? std::min(context.max_tokens(), *held)
                                                    : *held);
  }
  return context;
}

}  // namespace mtmc::search
