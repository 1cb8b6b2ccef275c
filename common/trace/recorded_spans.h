// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/trace/span.h"

namespace mtmc::trace {

// A sink for tests: traces everything while it lives and keeps what has ended.
// Thread-safe; one at a time.
class RecordedSpans {
 public:
  RecordedSpans() { StartTracing(book_); }

  ~RecordedSpans() { StopTracing(); }

  RecordedSpans(const RecordedSpans&) = delete;
  RecordedSpans& operator=(const RecordedSpans&) = delete;

  // In the order in which they ended.
  std::vector<SpanRecord> All() const { return book_->All(); }

  // Waits until a span of that name has ended and returns the first one; an empty record
  // if that takes minutes.
  SpanRecord Await(std::string_view name) const { return book_->Await(name); }

 private:
  class Book final : public SpanSink {
   public:
    void Take(SpanRecord span) override {
      absl::MutexLock lock(&mu_);
      spans_.push_back(std::move(span));
    }

    std::vector<SpanRecord> All() const {
      absl::MutexLock lock(&mu_);
      return spans_;
    }

    SpanRecord Await(std::string_view name) const {
      absl::MutexLock lock(&mu_);
      SpanRecord found;
      const auto is_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        for (const SpanRecord& span : spans_) {
          if (span.name != name) continue;
          found = span;
          return true;
        }
        return false;
      };
      mu_.AwaitWithTimeout(absl::Condition(&is_there), absl::Minutes(2));
      return found;
    }

   private:
    mutable absl::Mutex mu_;
    std::vector<SpanRecord> spans_ ABSL_GUARDED_BY(mu_);
  };

  const std::shared_ptr<Book> book_ = std::make_shared<Book>();
};

}  // namespace mtmc::trace
