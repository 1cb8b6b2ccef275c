// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/access/caller.h"
#include "common/base/status_macros.h"
#include "common/filter/filter.h"
#include "common/rpc/error.h"
#include "common/rpc/server_stream.h"
#include "common/rpc/unary.h"
#include "mtmc/v1/job.grpc.pb.h"
#include "server/coordinator/artifact_access.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/job_feed.h"
#include "server/coordinator/paging.h"
#include "server/coordinator/relay.h"
#include "server/coordinator/resource_name.h"
#include "server/coordinator/services.h"
#include "server/store/job_order.h"
#include "server/store/job_store.h"

namespace mtmc::coordinator {
namespace {

// How long a watcher that reads slowly may hold up the thread that serves it.
constexpr absl::Duration kMaxWriteWait = absl::Seconds(5);
// Jobs of one stream of WatchJobs.
constexpr int kMostWatches = 1'000;

class JobService final : public v1::JobService::CallbackService {
 public:
  JobService(Relay& relay, store::JobStore& store, JobFeed& feed, base::Executor& executor,
             const ArtifactAccess& access)
      : relay_(relay), store_(store), feed_(feed), executor_(executor), access_(access) {}

  grpc::ServerUnaryReactor* CreateJob(grpc::CallbackServerContext* context,
                                      const v1::CreateJobRequest* request,
                                      v1::CreateJobResponse* response) override {
    return relay_.Serve<v1::JobService>(
        context, *request, *response, executor_, &v1::JobService::Stub::CreateJob,
        [this, rights = access_.RightsOf(*context), caller = access::FindCaller(*context)](
            Coordinator& coordinator, const v1::CreateJobRequest& create) {
          return coordinator.CreateJob(
              create,
              [this, &rights](const v1::Digest& digest) { return access_.MayRead(rights, digest); },
              caller ? caller->name : "");
        });
  }

  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request,
                                   v1::GetJobResponse* response) override {
    return rpc::ServeUnary(context, *request, *response, executor_,
                           [this](const v1::GetJobRequest& get,
                                  const rpc::Call&) -> absl::StatusOr<v1::GetJobResponse> {
                             MTMC_RETURN_IF_ERROR(CheckJobName(get.name()));
                             v1::GetJobResponse found;
                             MTMC_ASSIGN_OR_RETURN(*found.mutable_job(),
                                                   store_.LookupJob(get.name()));
                             return found;
                           });
  }

  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override {
    return rpc::ServeUnary(
        context, *request, *response, executor_,
        [this](const v1::ListJobsRequest& list, const rpc::Call&) { return List(list); });
  }

  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const v1::CancelJobRequest* request,
                                      v1::CancelJobResponse* response) override {
    return relay_.Serve<v1::JobService>(
        context, *request, *response, executor_, &v1::JobService::Stub::CancelJob,
        [](Coordinator& coordinator,
           const v1::CancelJobRequest& cancel) -> absl::StatusOr<v1::CancelJobResponse> {
          // Cancelling twice is cancelling once, with or without a request id.
          MTMC_RETURN_IF_ERROR(CheckRequestId(cancel.request_id()));
          v1::CancelJobResponse cancelled;
          MTMC_ASSIGN_OR_RETURN(*cancelled.mutable_job(), coordinator.CancelJob(cancel.name()));
          return cancelled;
        });
  }

  grpc::ServerUnaryReactor* PauseJob(grpc::CallbackServerContext* context,
                                     const v1::PauseJobRequest* request,
                                     v1::PauseJobResponse* response) override {
    return ServeChange(context, *request, *response, &v1::JobService::Stub::PauseJob,
                       &Coordinator::PauseJob);
  }

  grpc::ServerUnaryReactor* ResumeJob(grpc::CallbackServerContext* context,
                                      const v1::ResumeJobRequest* request,
                                      v1::ResumeJobResponse* response) override {
    return ServeChange(context, *request, *response, &v1::JobService::Stub::ResumeJob,
                       &Coordinator::ResumeJob);
  }

  grpc::ServerUnaryReactor* DeleteJob(grpc::CallbackServerContext* context,
                                      const v1::DeleteJobRequest* request,
                                      v1::DeleteJobResponse* response) override {
    return relay_.Serve<v1::JobService>(
        context, *request, *response, executor_, &v1::JobService::Stub::DeleteJob,
        [](Coordinator& coordinator,
           const v1::DeleteJobRequest& drop) -> absl::StatusOr<v1::DeleteJobResponse> {
          MTMC_RETURN_IF_ERROR(coordinator.DeleteJob(drop.name()));
          return v1::DeleteJobResponse();
        });
  }

  grpc::ServerWriteReactor<v1::WatchJobsResponse>* WatchJobs(
      grpc::CallbackServerContext* /*context*/, const v1::WatchJobsRequest* request) override {
    auto stream = rpc::ServerStream<v1::WatchJobsResponse>::Create({});
    const absl::Status status = executor_.Submit([this, stream, watches = *request] {
      const absl::Status checked = CheckWatches(watches);
      if (!checked.ok()) return stream->Close(checked);
      // The last one to end closes the stream, the first error does at once.
      auto open = std::make_shared<std::atomic<int>>(watches.watches_size());
      for (const v1::WatchJobRequest& watch : watches.watches()) {
        feed_.Watch(watch.name(), watch.cursor(),
                    {.write =
                         [stream, name = watch.name()](v1::JobEvent event) {
                           v1::WatchJobsResponse response;
                           response.set_job(name);
                           *response.mutable_event() = std::move(event);
                           return stream->Write(std::move(response), absl::Now() + kMaxWriteWait);
                         },
                     .close =
                         [stream, open](const absl::Status& end) {
                           if (open->fetch_sub(1) == 1 || !end.ok()) stream->Close(end);
                         }});
      }
    });
    if (!status.ok()) stream->Close(status);
    return stream->reactor();
  }

  grpc::ServerWriteReactor<v1::WatchJobResponse>* WatchJob(
      grpc::CallbackServerContext* /*context*/, const v1::WatchJobRequest* request) override {
    auto stream = rpc::ServerStream<v1::WatchJobResponse>::Create({});
    const absl::Status status = executor_.Submit([this, stream, watch = *request] {
      const absl::Status checked = CheckWatch(watch);
      if (!checked.ok()) return stream->Close(checked);
      feed_.Watch(watch.name(), watch.cursor(),
                  {.write =
                       [stream](v1::JobEvent event) {
                         v1::WatchJobResponse response;
                         *response.mutable_event() = std::move(event);
                         return stream->Write(std::move(response), absl::Now() + kMaxWriteWait);
                       },
                   .close = [stream](const absl::Status& end) { stream->Close(end); }});
    });
    if (!status.ok()) stream->Close(status);
    return stream->reactor();
  }

 private:
  // Serves a method that changes the job that the request names, and answers with it.
  template <class Request, class Response>
  grpc::ServerUnaryReactor* ServeChange(
      grpc::CallbackServerContext* context, const Request& request, Response& response,
      grpc::Status (v1::JobService::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
      absl::StatusOr<v1::Job> (Coordinator::*change)(const std::string&)) {
    return relay_.Serve<v1::JobService>(
        context, request, response, executor_, method,
        [change](Coordinator& coordinator, const Request& asked) -> absl::StatusOr<Response> {
          Response changed;
          MTMC_ASSIGN_OR_RETURN(*changed.mutable_job(), (coordinator.*change)(asked.name()));
          return changed;
        });
  }

  absl::StatusOr<v1::ListJobsResponse> List(const v1::ListJobsRequest& request) {
    MTMC_RETURN_IF_ERROR(CheckProjectName(request.parent()));
    MTMC_ASSIGN_OR_RETURN(const filter::Filter filter,
                          filter::Filter::Parse(request.filter(), *v1::Job::descriptor()));
    MTMC_ASSIGN_OR_RETURN(const store::JobOrder order, store::ParseJobOrder(request.order_by()));
    MTMC_ASSIGN_OR_RETURN(
        FilteredPage<v1::Job> page,
        ReadPage<v1::Job>(
            filter, request.page_size(), request.page_token(),
            [&](int size, const std::string& token) -> absl::StatusOr<FilteredPage<v1::Job>> {
              MTMC_ASSIGN_OR_RETURN(store::JobPage read,
                                    store_.ListJobs({.project = request.parent(),
                                                     .order = order,
                                                     .page_size = size,
                                                     .page_token = token}));
              return FilteredPage<v1::Job>{std::move(read.jobs), std::move(read.next_page_token)};
            }));
    v1::ListJobsResponse response;
    for (v1::Job& job : page.records) *response.add_jobs() = std::move(job);
    response.set_next_page_token(page.next_page_token);
    return response;
  }

  absl::Status CheckWatch(const v1::WatchJobRequest& request) {
    MTMC_RETURN_IF_ERROR(CheckJobName(request.name()));
    if (request.cursor() < 0) {
      return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_CURSOR",
                            "cursor must be at least 0");
    }
    return store_.LookupState(request.name()).status();
  }

  absl::Status CheckWatches(const v1::WatchJobsRequest& request) {
    MTMC_RETURN_IF_ERROR(CheckProjectName(request.parent()));
    if (request.watches().empty() || request.watches_size() > kMostWatches) {
      return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_WATCH",
                            absl::StrCat("watches has ", request.watches_size(),
                                         " jobs, must have 1 to ", kMostWatches));
    }
    std::set<std::string> names;
    for (const v1::WatchJobRequest& watch : request.watches()) {
      if (!absl::StartsWith(watch.name(), request.parent() + "/")) {
        return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_WATCH",
                              absl::StrCat(watch.name(), " is no job of ", request.parent()));
      }
      if (!names.insert(watch.name()).second) {
        return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_WATCH",
                              absl::StrCat(watch.name(), " is named twice"));
      }
      MTMC_RETURN_IF_ERROR(CheckWatch(watch));
    }
    return absl::OkStatus();
  }

  Relay& relay_;
  store::JobStore& store_;
  JobFeed& feed_;
  base::Executor& executor_;
  const ArtifactAccess& access_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeJobService(Relay& relay, store::JobStore& store, JobFeed& feed,
                                              base::Executor& executor,
                                              const ArtifactAccess& access) {
  return std::make_unique<JobService>(relay, store, feed, executor, access);
}

}  // namespace mtmc::coordinator
