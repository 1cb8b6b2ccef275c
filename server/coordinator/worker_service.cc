// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/rpc/unary.h"
#include "mtmc/v1/worker.grpc.pb.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/paging.h"
#include "server/coordinator/relay.h"
#include "server/coordinator/resource_name.h"
#include "server/coordinator/services.h"

namespace mtmc::coordinator {
namespace {

class WorkerService final : public v1::WorkerService::CallbackService {
 public:
  WorkerService(Relay& relay, base::Executor& executor) : relay_(relay), executor_(executor) {}

  grpc::ServerUnaryReactor* GetWorker(grpc::CallbackServerContext* context,
                                      const v1::GetWorkerRequest* request,
                                      v1::GetWorkerResponse* response) override {
    return relay_.Serve<v1::WorkerService>(
        context, *request, *response, executor_, &v1::WorkerService::Stub::GetWorker,
        [](Coordinator& coordinator,
           const v1::GetWorkerRequest& get) -> absl::StatusOr<v1::GetWorkerResponse> {
          MTMC_RETURN_IF_ERROR(CheckWorkerName(get.name()));
          v1::GetWorkerResponse found;
          MTMC_ASSIGN_OR_RETURN(*found.mutable_worker(), coordinator.LookupWorker(get.name()));
          return found;
        });
  }

  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override {
    return relay_.Serve<v1::WorkerService>(context, *request, *response, executor_,
                                           &v1::WorkerService::Stub::ListWorkers, List);
  }

  grpc::ServerUnaryReactor* DrainWorker(grpc::CallbackServerContext* context,
                                        const v1::DrainWorkerRequest* request,
                                        v1::DrainWorkerResponse* response) override {
    return relay_.Serve<v1::WorkerService>(
        context, *request, *response, executor_, &v1::WorkerService::Stub::DrainWorker,
        [](Coordinator& coordinator, const v1::DrainWorkerRequest& drain) {
          return SetDraining<v1::DrainWorkerResponse>(coordinator, drain, true);
        });
  }

  grpc::ServerUnaryReactor* UndrainWorker(grpc::CallbackServerContext* context,
                                          const v1::UndrainWorkerRequest* request,
                                          v1::UndrainWorkerResponse* response) override {
    return relay_.Serve<v1::WorkerService>(
        context, *request, *response, executor_, &v1::WorkerService::Stub::UndrainWorker,
        [](Coordinator& coordinator, const v1::UndrainWorkerRequest& undrain) {
          return SetDraining<v1::UndrainWorkerResponse>(coordinator, undrain, false);
        });
  }

 private:
  static absl::StatusOr<v1::ListWorkersResponse> List(Coordinator& coordinator,
                                                      const v1::ListWorkersRequest& request) {
    MTMC_ASSIGN_OR_RETURN(std::vector<v1::Worker> all, coordinator.ListWorkers());
    MTMC_ASSIGN_OR_RETURN(std::vector<v1::Worker> workers,
                          Filtered(std::move(all), request.filter()));
    MTMC_ASSIGN_OR_RETURN(
        FilteredPage<v1::Worker> page,
        PageByName("workers", std::move(workers), request.page_size(), request.page_token(),
                   [](const v1::Worker& worker) { return worker.name(); }));
    v1::ListWorkersResponse response;
    response.mutable_workers()->Assign(page.records.begin(), page.records.end());
    response.set_next_page_token(page.next_page_token);
    return response;
  }

  // Doing it twice is doing it once, with or without a request id.
  template <class Response, class Request>
  static absl::StatusOr<Response> SetDraining(Coordinator& coordinator, const Request& request,
                                              bool is_draining) {
    MTMC_RETURN_IF_ERROR(CheckWorkerName(request.name()));
    MTMC_RETURN_IF_ERROR(CheckRequestId(request.request_id()));
    Response response;
    MTMC_ASSIGN_OR_RETURN(*response.mutable_worker(),
                          coordinator.SetDraining(request.name(), is_draining));
    return response;
  }

  Relay& relay_;
  base::Executor& executor_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeWorkerService(Relay& relay, base::Executor& executor) {
  return std::make_unique<WorkerService>(relay, executor);
}

}  // namespace mtmc::coordinator
