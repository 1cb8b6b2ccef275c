// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/util/time_util.h>

#include <iostream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"

namespace mtmc::client {
namespace {

using google::protobuf::util::TimeUtil;

constexpr char kNone[] = "none";

std::string NameOf(const QuotaOptions& options) {
  const std::string& project = options.project.empty() ? options.common.project : options.project;
  return absl::StrCat("projects/", project, "/quota");
}

// `projects/p/quota` to `p`.
std::string ProjectOf(const v1::Quota& quota) {
  const std::string& name = quota.name();
  const size_t begin = name.find('/') + 1;
  return name.substr(begin, name.rfind('/') - begin);
}

std::string FormatTime(const google::protobuf::Duration& time) {
  const absl::Duration duration = absl::Microseconds(TimeUtil::DurationToMicroseconds(time));
  // Nobody reads the parts of a second of an hour.
  return absl::FormatDuration(absl::Trunc(
      duration, duration < absl::Minutes(1) ? absl::Milliseconds(1) : absl::Seconds(1)));
}

std::string OfLimit(bool has_limit, const std::string& limit) { return has_limit ? limit : "-"; }

absl::Status InvalidLimit(const std::string& flag, const std::string& value,
                          const std::string& form) {
  return rpc::MakeError(
      absl::StatusCode::kInvalidArgument, "INVALID_QUOTA",
      absl::StrCat(flag, " is '", value, "', must be ", form, ", or 'none' for no limit"));
}

absl::StatusOr<int64_t> ParseCount(const std::string& flag, const std::string& value) {
  int64_t count = 0;
  if (absl::SimpleAtoi(value, &count) && count >= 0) return count;
  return InvalidLimit(flag, value, "a number of at least 0");
}

absl::StatusOr<google::protobuf::Duration> ParseTime(const std::string& flag,
                                                     const std::string& value) {
  absl::Duration time;
  if (absl::ParseDuration(value, &time) && time >= absl::ZeroDuration() &&
      time < absl::Hours(24 * 36500)) {
    return TimeUtil::MicrosecondsToDuration(absl::ToInt64Microseconds(time));
  }
  return InvalidLimit(flag, value, "a time such as 90m or 2h30m");
}

// What the options change; empty texts change nothing.
absl::StatusOr<v1::UpdateQuotaRequest> RequestOf(const QuotaOptions& options) {
  v1::UpdateQuotaRequest request;
  request.set_name(NameOf(options));
  request.set_reset_use(options.resets_use);
  v1::Quota& quota = *request.mutable_quota();
  if (!options.open_jobs.empty()) {
    request.mutable_update_mask()->add_paths("max_open_jobs");
    if (options.open_jobs != kNone) {
      MTMC_ASSIGN_OR_RETURN(const int64_t count, ParseCount("--open-jobs", options.open_jobs));
      quota.set_max_open_jobs(count);
    }
  }
  if (!options.device_time.empty()) {
    request.mutable_update_mask()->add_paths("max_device_time");
    if (options.device_time != kNone) {
      MTMC_ASSIGN_OR_RETURN(*quota.mutable_max_device_time(),
                            ParseTime("--device-time", options.device_time));
    }
  }
  if (!options.tokens.empty()) {
    request.mutable_update_mask()->add_paths("max_tokens");
    if (options.tokens != kNone) {
      MTMC_ASSIGN_OR_RETURN(const int64_t count, ParseCount("--tokens", options.tokens));
      quota.set_max_tokens(count);
    }
  }
  if (request.update_mask().paths().empty() && !options.resets_use) {
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_QUOTA",
                          "nothing to change; give --open-jobs, --device-time, --tokens or "
                          "--reset-use");
  }
  return request;
}

void Print(const std::vector<v1::Quota>& quotas) {
  Table table({"project", ">open jobs", ">of", ">device time", ">reserved", ">of", ">tokens",
               ">reserved", ">of"});
  for (const v1::Quota& quota : quotas) {
    const v1::QuotaUse& use = quota.use();
    table.AddRow({ProjectOf(quota), absl::StrCat(use.open_jobs()),
                  OfLimit(quota.has_max_open_jobs(), absl::StrCat(quota.max_open_jobs())),
                  FormatTime(use.device_time()), FormatTime(use.reserved_device_time()),
                  OfLimit(quota.has_max_device_time(), FormatTime(quota.max_device_time())),
                  absl::StrCat(use.tokens()), absl::StrCat(use.reserved_tokens()),
                  OfLimit(quota.has_max_tokens(), absl::StrCat(quota.max_tokens()))});
  }
  table.Print(std::cout);
}

absl::StatusOr<ExitCode> List(const QuotaOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  MTMC_ASSIGN_OR_RETURN(const std::vector<v1::Quota> quotas,
                        session.api->ListQuotas(options.filter));
  if (options.common.is_json) {
    v1::ListQuotasResponse response;
    response.mutable_quotas()->Assign(quotas.begin(), quotas.end());
    PrintJson(response, std::cout);
  } else {
    Print(quotas);
  }
  return kExitOk;
}

absl::StatusOr<ExitCode> Show(const QuotaOptions& options, const v1::Quota& quota) {
  if (options.common.is_json) {
    PrintJson(quota, std::cout);
  } else {
    Print({quota});
  }
  return kExitOk;
}

absl::StatusOr<ExitCode> Get(const QuotaOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  MTMC_ASSIGN_OR_RETURN(const v1::Quota quota, session.api->GetQuota(NameOf(options)));
  return Show(options, quota);
}

absl::StatusOr<ExitCode> Set(const QuotaOptions& options) {
  MTMC_ASSIGN_OR_RETURN(const v1::UpdateQuotaRequest request, RequestOf(options));
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  MTMC_ASSIGN_OR_RETURN(const v1::Quota quota, session.api->UpdateQuota(request));
  return Show(options, quota);
}

}  // namespace

ExitCode RunQuotaList(const QuotaOptions& options) { return Finish(List(options)); }

ExitCode RunQuotaGet(const QuotaOptions& options) { return Finish(Get(options)); }

ExitCode RunQuotaSet(const QuotaOptions& options) { return Finish(Set(options)); }

}  // namespace mtmc::client
