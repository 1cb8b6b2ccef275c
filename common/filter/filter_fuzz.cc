// SPDX-License-Identifier: Apache-2.0

// Any bytes may come as a filter. One that is taken has a verdict on a job, and its
// negation has the other one.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "common/filter/filter.h"
#include "mtmc/v1/job.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using mtmc::filter::Filter;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto& type = *mtmc::v1::Job::descriptor();
  const auto filter = Filter::Parse(text, type);
  if (!filter.ok() || filter->is_empty()) return 0;
  mtmc::v1::Job job;
  job.set_state(mtmc::v1::Job::STATE_SUCCEEDED);
  job.mutable_problem()->set_display_name("gelu");
  const auto negated = Filter::Parse("NOT (" + text + ")", type);
  // The longer text may be too long or too deep.
  if (negated.ok() && negated->Matches(job) == filter->Matches(job)) std::abort();
  return 0;
}
