// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include "common/base/status_macros.h"
#include "common/rpc/unary.h"
#include "mtmc/v1/candidate.grpc.pb.h"
#include "server/coordinator/resource_name.h"
#include "server/coordinator/services.h"
#include "server/store/job_store.h"

namespace mtmc::coordinator {
namespace {

class CandidateService final : public v1::CandidateService::CallbackService {
 public:
  CandidateService(store::JobStore& store, base::Executor& executor)
      : store_(store), executor_(executor) {}

  grpc::ServerUnaryReactor* GetCandidate(grpc::CallbackServerContext* context,
                                         const v1::GetCandidateRequest* request,
                                         v1::GetCandidateResponse* response) override {
    return rpc::ServeUnary(context, *request, *response, executor_,
                           [this](const v1::GetCandidateRequest& get,
                                  const rpc::Call&) -> absl::StatusOr<v1::GetCandidateResponse> {
                             MTMC_RETURN_IF_ERROR(CheckCandidateName(get.name()));
                             v1::GetCandidateResponse found;
                             MTMC_ASSIGN_OR_RETURN(*found.mutable_candidate(),
                                                   store_.LookupCandidate(get.name()));
                             return found;
                           });
  }

  grpc::ServerUnaryReactor* ListCandidates(grpc::CallbackServerContext* context,
                                           const v1::ListCandidatesRequest* request,
                                           v1::ListCandidatesResponse* response) override {
    return rpc::ServeUnary(
        context, *request, *response, executor_,
        [this](const v1::ListCandidatesRequest& list, const rpc::Call&) { return List(list); });
  }

 private:
  absl::StatusOr<v1::ListCandidatesResponse> List(const v1::ListCandidatesRequest& request) {
    MTMC_RETURN_IF_ERROR(CheckJobName(request.parent()));
    // An unknown job is an error, a job without candidates an empty page.
    MTMC_RETURN_IF_ERROR(store_.LookupJob(request.parent()).status());
    MTMC_ASSIGN_OR_RETURN(store::CandidatePage page,
                          store_.ListCandidates({.job = request.parent(),
                                                 .page_size = request.page_size(),
                                                 .page_token = request.page_token()}));
    v1::ListCandidatesResponse response;
    for (v1::Candidate& candidate : page.candidates) {
      *response.add_candidates() = std::move(candidate);
    }
    response.set_next_page_token(page.next_page_token);
    return response;
  }

  store::JobStore& store_;
  base::Executor& executor_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeCandidateService(store::JobStore& store,
                                                    base::Executor& executor) {
  return std::make_unique<CandidateService>(store, executor);
}

}  // namespace mtmc::coordinator
