// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "mtmc/v1/job.pb.h"
#include "server/store/job_store.h"
#include "server/store/page_token.h"

namespace mtmc::store {

// What `ListJobsRequest.order_by` asks for; empty is the newest first. INVALID_ARGUMENT
// with reason INVALID_ORDER.
absl::StatusOr<JobOrder> ParseJobOrder(const std::string& order_by);

// The rest is for implementations of JobStore, which order by whole numbers of at least
// 0 alone, so that a mark in a page token is exact.

// The number that stands for the value; nothing if the job has none. Not for
// kCreateTime, for which a store numbers its jobs.
std::optional<int64_t> OrderKey(const v1::Job& job, JobOrder::Field field);

// The number of jobs that have no value: it comes after all others.
int64_t LastKey(const JobOrder& order);

// Where a job stands that is the `position`th one of its store.
PageMark MarkOf(const v1::Job& job, int64_t position, const JobOrder& order);

// Before all jobs.
PageMark FirstMark(const JobOrder& order);

// Whether what is marked by `b` comes after `a`.
bool IsAfter(const PageMark& a, const PageMark& b, const JobOrder& order);

// Tells tokens of different orders apart.
std::string ListingOf(const JobOrder& order);

}  // namespace mtmc::store
