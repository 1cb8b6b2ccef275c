// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "worker/builder/build_cache.h"
#include "worker/builder/client.h"
#include "worker/verify/party.h"

namespace mtmc::worker {

// Several builder processes behind one cache.
//
//   variants -> cache -> those missing, in equal shares -> free builders -> cache
//
// A program that takes its builder down costs the others nothing. Thread-safe.
class BuilderPool {
 public:
  struct Options {
    // Of each builder; its scratch folder gets one folder for each, and
    // `is_cancelled` is not used.
    BuilderClient::Options builder;
    int num_builders = 1;
    BuildCache::Options cache;
  };

  explicit BuilderPool(Options options);
  ~BuilderPool();

  // As BuilderParty::Call. Blocks while all builders are busy. Where some
  // variants could not be answered, the reply is that of one of them.
  Reply<pipe::v1::BuilderResponse> Build(const pipe::v1::BuilderRequest& request,
                                         absl::Duration timeout,
                                         const std::function<bool()>& is_cancelled);

 private:
  struct Builder;
  using IsCancelled = std::function<bool()>;

  Reply<pipe::v1::BuilderResponse> BuildShare(const pipe::v1::BuilderRequest& request,
                                              absl::Time deadline, const IsCancelled& is_cancelled);
  Builder* Acquire(absl::Time deadline, const IsCancelled& is_cancelled);
  void Release(Builder* builder);

  const Options options_;
  BuildCache cache_;
  std::vector<std::unique_ptr<Builder>> builders_;
  absl::Mutex mu_;
  absl::CondVar released_;
  // Most recently used last: it is the warmest.
  std::vector<Builder*> free_ ABSL_GUARDED_BY(mu_);
};

// A caller's view of the pool, with its own way to be called off.
class PooledBuilder final : public BuilderParty {
 public:
  // Borrows the pool. `is_cancelled` is asked every 50 ms while a call waits.
  PooledBuilder(BuilderPool& pool, std::function<bool()> is_cancelled)
      : pool_(pool), is_cancelled_(std::move(is_cancelled)) {}

  Reply<pipe::v1::BuilderResponse> Call(const pipe::v1::BuilderRequest& request,
                                        absl::Duration timeout) override {
    return pool_.Build(request, timeout, is_cancelled_);
  }

 private:
  BuilderPool& pool_;
  const std::function<bool()> is_cancelled_;
};

// Builders for a host with `num_cores`: half of the cores, at most four. A builder
// compiles the variants of a sweep on several threads.
int DefaultBuilders(int num_cores);

}  // namespace mtmc::worker
