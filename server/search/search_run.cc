// SPDX-License-Identifier: Apache-2.0
#include "server/search/search_run.h"

#include <utility>

#include "common/base/executor.h"
#include "server/search/event_loop.h"
#include "server/search/fingerprint.h"
#include "server/store/artifact_store.h"
#include "server/store/quota.h"

namespace mtmc::search {
namespace {

using boost::asio::awaitable;

constexpr int64_t kMaxProgramBytes = 16 << 20;

}  // namespace

SearchRun::SearchRun(std::string job_name, const Search::Options& search_options,
                     const SearchTools& search_tools)
    : name(std::move(job_name)),
      options(search_options),
      tools(search_tools),
      journal(name, options, tools, interruption),
      trace(name),
      allowance(options, tools, journal, interruption),
      coder(options, tools, journal, trace, allowance, interruption) {}

awaitable<absl::StatusOr<v1::Program>> SearchRun::ReadProgram(const v1::Candidate& candidate) {
  if (!kept_ || kept_->sha256 != candidate.program().sha256()) {
    absl::StatusOr<std::string> text = co_await ReadText(candidate.program());
    if (!text.ok()) co_return text.status();
    KeepText(candidate.program(), *std::move(text));
  }
  v1::Program program;
  program.set_text(kept_->text);
  program.set_schedule(candidate.schedule());
  co_return program;
}

void SearchRun::KeepText(const v1::Digest& digest, std::string text) {
  kept_ = Text{.sha256 = digest.sha256(), .text = std::move(text)};
}

awaitable<absl::StatusOr<std::string>> SearchRun::ReadText(v1::Digest digest) {
  // Off the loop: the store may be a network away.
  const auto read = [this, &digest](const Done<std::string>& done) {
    const absl::Status status = tools.readers.Submit([&artifacts = tools.artifacts, digest, done] {
      done(store::ReadWhole(artifacts, digest, kMaxProgramBytes));
    });
    if (!status.ok()) done(status);
  };
  absl::StatusOr<std::string> text = co_await Await<std::string>(tools.loop, interruption, read);
  while (!text.ok() && IsPassing(text.status()) && !interruption.is_set()) {
    co_await WaitFor(tools.loop, interruption, options.max_backoff);
    text = co_await Await<std::string>(tools.loop, interruption, read);
  }
  co_return text;
}

std::string SearchRun::KeyOf(const std::string& key) const {
  return options.shares_across_projects ? key : WithinProject(store::ProjectOfJob(name), key);
}

Work SearchRun::NewWork(const std::string& candidate) {
  Work work;
  work.lease.set_job(name);
  work.lease.set_candidate(candidate);
  work.demand = fleet::DemandOf(job);
  work.stuck = [this](const std::string& why) { journal.RecordWaiting(why); };
  return work;
}

awaitable<absl::StatusOr<v1::LeaseResult>> SearchRun::Submit(Work work) {
  const std::string key = work.key;
  submitted = key;
  // A queue may be long, and jobs many.
  kept_.reset();
  auto result = co_await Await<v1::LeaseResult>(
      tools.loop, interruption, [this, &work](Done<v1::LeaseResult> done) {
        tools.evaluator.Submit(std::move(work), std::move(done));
      });
  submitted.clear();
  if (!result.ok()) {
    allowance.CallOff();
    tools.evaluator.Abandon(key, name);
  }
  co_return result;
}

}  // namespace mtmc::search
