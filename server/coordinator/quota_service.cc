// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/util/time_util.h>
#include <grpcpp/grpcpp.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "common/rpc/unary.h"
#include "mtmc/v1/quota.grpc.pb.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/paging.h"
#include "server/coordinator/relay.h"
#include "server/coordinator/resource_name.h"
#include "server/coordinator/services.h"
#include "server/store/job_store.h"

namespace mtmc::coordinator {
namespace {

using google::protobuf::util::TimeUtil;
using store::QuotaResource;

constexpr std::string_view kSuffix = "/quota";

absl::Status InvalidQuota(const std::string& message) {
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_QUOTA", message);
}

// The range of google.protobuf.Duration, some 10,000 years.
constexpr int64_t kMaxSeconds = 315'576'000'000;

absl::Status CheckTime(const google::protobuf::Duration& time) {
  if (time.seconds() >= 0 && time.seconds() <= kMaxSeconds && time.nanos() >= 0) {
    return absl::OkStatus();
  }
  return InvalidQuota(
      "max_device_time is negative or above 10,000 years; leave it unset for no"
      " limit");
}

// `projects/p/quota` to `projects/p`.
std::string ProjectOf(const std::string& name) {
  return name.substr(0, name.size() - kSuffix.size());
}

v1::Quota ToProto(const store::ProjectQuota& quota) {
  v1::Quota proto;
  proto.set_name(absl::StrCat(quota.project, "/quota"));
  v1::QuotaUse& use = *proto.mutable_use();
  for (const auto& [resource, account] : quota.accounts) {
    switch (resource) {
      case QuotaResource::kOpenJobs:
        if (account.allowed) proto.set_max_open_jobs(*account.allowed);
        use.set_open_jobs(account.reserved);
        break;
      case QuotaResource::kDeviceTime:
        if (account.allowed) {
          *proto.mutable_max_device_time() = TimeUtil::MicrosecondsToDuration(*account.allowed);
        }
        *use.mutable_device_time() = TimeUtil::MicrosecondsToDuration(account.used);
        *use.mutable_reserved_device_time() = TimeUtil::MicrosecondsToDuration(account.reserved);
        break;
      case QuotaResource::kTokens:
        if (account.allowed) proto.set_max_tokens(*account.allowed);
        use.set_tokens(account.used);
        use.set_reserved_tokens(account.reserved);
        break;
    }
  }
  return proto;
}

// The limits that the request changes, on resources of `project`.
absl::StatusOr<std::vector<store::QuotaLimit>> LimitsOf(const v1::UpdateQuotaRequest& request) {
  const std::string project = ProjectOf(request.name());
  const v1::Quota& quota = request.quota();
  std::vector<store::QuotaLimit> limits;
  for (const std::string& path : request.update_mask().paths()) {
    store::QuotaLimit limit{.project = project};
    if (path == "max_open_jobs") {
      limit.resource = QuotaResource::kOpenJobs;
      if (quota.has_max_open_jobs()) limit.allowed = quota.max_open_jobs();
    } else if (path == "max_device_time") {
      limit.resource = QuotaResource::kDeviceTime;
      if (quota.has_max_device_time()) {
        MTMC_RETURN_IF_ERROR(CheckTime(quota.max_device_time()));
        limit.allowed = TimeUtil::DurationToMicroseconds(quota.max_device_time());
      }
    } else if (path == "max_tokens") {
      limit.resource = QuotaResource::kTokens;
      if (quota.has_max_tokens()) limit.allowed = quota.max_tokens();
    } else {
      return InvalidQuota(absl::StrCat("update_mask names \"", path.substr(0, 64),
                                       "\"; it may name max_open_jobs, max_device_time and "
                                       "max_tokens"));
    }
    if (limit.allowed.value_or(0) < 0) {
      return InvalidQuota(
          absl::StrCat(path, " is negative; leave it unset for no limit, 0 allows nothing"));
    }
    limits.push_back(std::move(limit));
  }
  if (request.reset_use()) {
    for (const QuotaResource resource : {QuotaResource::kDeviceTime, QuotaResource::kTokens}) {
      limits.push_back(
          {.project = project, .resource = resource, .is_set = false, .resets_use = true});
    }
  }
  if (limits.empty()) return InvalidQuota("update_mask is empty; name the limits to change");
  return limits;
}

class QuotaService final : public v1::QuotaService::CallbackService {
 public:
  QuotaService(Relay& relay, store::JobStore& store, base::Executor& executor)
      : relay_(relay), store_(store), executor_(executor) {}

  grpc::ServerUnaryReactor* GetQuota(grpc::CallbackServerContext* context,
                                     const v1::GetQuotaRequest* request,
                                     v1::GetQuotaResponse* response) override {
    return rpc::ServeUnary(context, *request, *response, executor_,
                           [this](const v1::GetQuotaRequest& get,
                                  const rpc::Call&) -> absl::StatusOr<v1::GetQuotaResponse> {
                             MTMC_RETURN_IF_ERROR(CheckQuotaName(get.name()));
                             v1::GetQuotaResponse found;
                             MTMC_ASSIGN_OR_RETURN(*found.mutable_quota(),
                                                   Read(ProjectOf(get.name())));
                             return found;
                           });
  }

  grpc::ServerUnaryReactor* ListQuotas(grpc::CallbackServerContext* context,
                                       const v1::ListQuotasRequest* request,
                                       v1::ListQuotasResponse* response) override {
    return rpc::ServeUnary(
        context, *request, *response, executor_,
        [this](const v1::ListQuotasRequest& list, const rpc::Call&) { return List(list); });
  }

  grpc::ServerUnaryReactor* UpdateQuota(grpc::CallbackServerContext* context,
                                        const v1::UpdateQuotaRequest* request,
                                        v1::UpdateQuotaResponse* response) override {
    return relay_.Serve<v1::QuotaService>(
        context, *request, *response, executor_, &v1::QuotaService::Stub::UpdateQuota,
        [this](Coordinator& coordinator, const v1::UpdateQuotaRequest& update) {
          return Update(coordinator, update);
        });
  }

 private:
  absl::StatusOr<v1::Quota> Read(const std::string& project) {
    MTMC_ASSIGN_OR_RETURN(const auto quotas, store_.ListQuotas(project));
    return ToProto(quotas.empty() ? store::ProjectQuota{.project = project, .accounts = {}}
                                  : quotas.front());
  }

  absl::StatusOr<v1::ListQuotasResponse> List(const v1::ListQuotasRequest& request) {
    MTMC_ASSIGN_OR_RETURN(const auto stored, store_.ListQuotas(""));
    std::vector<v1::Quota> all;
    for (const store::ProjectQuota& quota : stored) all.push_back(ToProto(quota));
    MTMC_ASSIGN_OR_RETURN(std::vector<v1::Quota> quotas,
                          Filtered(std::move(all), request.filter()));
    MTMC_ASSIGN_OR_RETURN(
        const FilteredPage<v1::Quota> page,
        PageByName("quotas", std::move(quotas), request.page_size(), request.page_token(),
                   [](const v1::Quota& quota) { return ProjectOf(quota.name()); }));
    v1::ListQuotasResponse response;
    response.mutable_quotas()->Assign(page.records.begin(), page.records.end());
    response.set_next_page_token(page.next_page_token);
    return response;
  }

  // Doing it twice is doing it once, but for a use that is set to zero.
  absl::StatusOr<v1::UpdateQuotaResponse> Update(Coordinator& coordinator,
                                                 const v1::UpdateQuotaRequest& request) {
    MTMC_RETURN_IF_ERROR(CheckQuotaName(request.name()));
    MTMC_ASSIGN_OR_RETURN(const std::vector<store::QuotaLimit> limits, LimitsOf(request));
    MTMC_RETURN_IF_ERROR(coordinator.SetQuotaLimits(limits));
    v1::UpdateQuotaResponse response;
    MTMC_ASSIGN_OR_RETURN(*response.mutable_quota(), Read(ProjectOf(request.name())));
    return response;
  }

  Relay& relay_;
  store::JobStore& store_;
  base::Executor& executor_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeQuotaService(Relay& relay, store::JobStore& store,
                                                base::Executor& executor) {
  return std::make_unique<QuotaService>(relay, store, executor);
}

}  // namespace mtmc::coordinator
