// SPDX-License-Identifier: Apache-2.0
#include "server/store/quota.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/string_view.h"
#include "common/rpc/error.h"

namespace mtmc::store {
namespace {

std::string Amount(QuotaResource resource, int64_t amount) {
  if (resource == QuotaResource::kDeviceTime) {
    return absl::FormatDuration(absl::Microseconds(amount));
  }
  return absl::StrCat(amount);
}

std::string_view Noun(QuotaResource resource) {
  switch (resource) {
    case QuotaResource::kOpenJobs:
      return "open jobs";
    case QuotaResource::kDeviceTime:
      return "device time";
    case QuotaResource::kTokens:
      return "tokens";
  }
  return "";
}

}  // namespace

std::string_view QuotaResourceName(QuotaResource resource) {
  switch (resource) {
    case QuotaResource::kOpenJobs:
      return "open_jobs";
    case QuotaResource::kDeviceTime:
      return "device_time";
    case QuotaResource::kTokens:
      return "tokens";
  }
  return "";
}

QuotaStep QuotaStep::Of(const QuotaChange& change, int64_t held_before) {
  const int64_t counted =
      held_before > 0 ? std::min(change.used, held_before) : std::max<int64_t>(change.used, 0);
  const int64_t left = held_before > 0 ? held_before - counted : 0;
  return {.held = change.reserved.value_or(left), .counted = counted};
}

std::string DescribeAccount(QuotaResource resource, const QuotaAccount& account) {
  std::string text;
  if (resource != QuotaResource::kOpenJobs) {
    text = absl::StrCat(Amount(resource, account.used), " used and ");
  }
  absl::StrAppend(&text, Amount(resource, account.reserved),
                  resource == QuotaResource::kOpenJobs ? " there" : " reserved", ", ",
                  account.allowed ? Amount(resource, *account.allowed) : "any", " allowed");
  return text;
}

absl::Status QuotaExceeded(const std::string& project, QuotaResource resource,
                           const QuotaAccount& account) {
  return rpc::MakeError(
      absl::StatusCode::kResourceExhausted, "QUOTA_EXCEEDED",
      absl::StrCat("the quota of ", project, " has no room for more ", base::ToAbsl(Noun(resource)),
                   ": ", DescribeAccount(resource, account),
                   resource == QuotaResource::kOpenJobs
                       ? "; wait until a job ends, or cancel one"
                       : "; an administrator can raise it with 'mtmc quota set'"),
      {{"resource", std::string(QuotaResourceName(resource))},
       {"used", absl::StrCat(account.used + account.reserved)},
       {"allowed", absl::StrCat(account.allowed.value_or(0))}});
}

std::string ProjectOfJob(const std::string& job) { return job.substr(0, job.rfind("/jobs/")); }

}  // namespace mtmc::store
