// SPDX-License-Identifier: Apache-2.0
#include "worker/builder/builder_pool.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "worker/builder/cached_build.h"

namespace mtmc::worker {
namespace {

using Response = pipe::v1::BuilderResponse;
using Ending = Reply<Response>::Ending;

// How often a call that waits for a builder asks whether it is still wanted.
constexpr absl::Duration kPollSlice = absl::Milliseconds(50);

// What a compiler says about a text stays true; a builder that ran out of time
// or memory may have been unlucky.
bool IsWorthKeeping(const Response::Built& built) {
  return !built.has_failure() || built.failure().kind() == v1::Failure::KIND_COMPILE;
}

// `indices` in `num_shares` parts that differ by one at most.
std::vector<std::vector<int>> Shares(const std::vector<int>& indices, size_t num_shares) {
  std::vector<std::vector<int>> shares(num_shares);
  for (size_t i = 0; i < indices.size(); ++i) shares[i % num_shares].push_back(indices[i]);
  return shares;
}

}  // namespace

struct BuilderPool::Builder {
  explicit Builder(BuilderClient::Options options)
      : client([&] {
          options.is_cancelled = [this] { return is_cancelled != nullptr && (*is_cancelled)(); };
          return std::move(options);
        }()) {}

  // Of the caller that has acquired it; null in between.
  const IsCancelled* is_cancelled = nullptr;
  BuilderClient client;
};

int DefaultBuilders(int num_cores) { return std::clamp(num_cores / 2, 1, 4); }

BuilderPool::BuilderPool(Options options) : options_(std::move(options)), cache_(options_.cache) {
  for (int i = 0; i < std::max(1, options_.num_builders); ++i) {
    BuilderClient::Options builder = options_.builder;
    builder.scratch = absl::StrCat(builder.scratch, "/", i);
    builders_.push_back(std::make_unique<Builder>(std::move(builder)));
    free_.push_back(builders_.back().get());
  }
}

BuilderPool::~BuilderPool() = default;

Reply<Response> BuilderPool::Build(const pipe::v1::BuilderRequest& request, absl::Duration timeout,
                                   const IsCancelled& is_cancelled) {
  const absl::Time deadline = absl::Now() + timeout;
  pipe::v1::BuilderRequest named = request;
  if (named.build().variants().empty()) named.mutable_build()->add_variants();
  const auto& variants = named.build().variants();

  std::vector<std::string> keys;
  std::vector<Response::Built> built(static_cast<size_t>(variants.size()));
  std::vector<int> missing;
  for (int i = 0; i < variants.size(); ++i) {
    keys.push_back(BuildKey(named.build(), variants[i]));
    auto found = cache_.Find(keys.back());
    if (!found) missing.push_back(i);
    if (found) built[static_cast<size_t>(i)] = *std::move(found);
  }

  const auto shares = Shares(missing, std::min(missing.size(), builders_.size()));
  std::vector<Reply<Response>> replies(shares.size());
  auto build_share = [&](size_t share) {
    pipe::v1::BuilderRequest part = named;
    part.mutable_build()->clear_variants();
    for (const int index : shares[share]) *part.mutable_build()->add_variants() = variants[index];
    replies[share] = BuildShare(part, deadline, is_cancelled);
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < shares.size(); ++i) threads.emplace_back(build_share, i);
    if (!shares.empty()) build_share(0);
  }

  for (size_t share = 0; share < shares.size(); ++share) {
    Reply<Response>& reply = replies[share];
    if (!reply.is_answered()) return std::move(reply);
    for (size_t i = 0; i < shares[share].size(); ++i) {
      const auto index = static_cast<size_t>(shares[share][i]);
      built[index] = std::move(*reply.response.mutable_built(static_cast<int>(i)));
      if (IsWorthKeeping(built[index])) cache_.Put(keys[index], built[index]);
    }
  }
  Reply<Response> reply{.ending = Ending::kAnswered};
  reply.response.set_sequence(request.sequence());
  for (Response::Built& one : built) *reply.response.add_built() = std::move(one);
  return reply;
}

// Answered means: one result for each variant of `request`.
Reply<Response> BuilderPool::BuildShare(const pipe::v1::BuilderRequest& request,
                                        absl::Time deadline, const IsCancelled& is_cancelled) {
  Builder* builder = is_cancelled() ? nullptr : Acquire(deadline, is_cancelled);
  if (builder == nullptr) {
    return {.ending = is_cancelled() ? Ending::kCancelled : Ending::kTimedOut,
            .response = {},
            .detail = "all builders were busy"};
  }
  builder->is_cancelled = &is_cancelled;
  auto reply = builder->client.Call(request, deadline - absl::Now());
  builder->is_cancelled = nullptr;
  Release(builder);
  if (reply.is_answered() && reply.response.built_size() != request.build().variants_size()) {
    reply.ending = Ending::kDied;
    reply.detail = "the builder left out results";
  }
  return reply;
}

BuilderPool::Builder* BuilderPool::Acquire(absl::Time deadline, const IsCancelled& is_cancelled) {
  absl::MutexLock lock(&mu_);
  while (free_.empty()) {
    if (absl::Now() >= deadline || is_cancelled()) return nullptr;
    released_.WaitWithTimeout(&mu_, kPollSlice);
  }
  Builder* builder = free_.back();
  free_.pop_back();
  return builder;
}

void BuilderPool::Release(Builder* builder) {
  absl::MutexLock lock(&mu_);
  free_.push_back(builder);
  released_.Signal();
}

}  // namespace mtmc::worker
