// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include "common/base/status_macros.h"
#include "common/filter/filter.h"
#include "common/rpc/unary.h"
#include "mtmc/v1/candidate.grpc.pb.h"
#include "server/coordinator/paging.h"
#include "server/coordinator/resource_name.h"
#include "server/coordinator/services.h"
#include "server/store/job_store.h"

namespace mtmc::coordinator {
namespace {

using Page = FilteredPage<v1::Candidate>;

// CANDIDATE_VIEW_BASIC, as candidate.proto has it.
void TrimToBasic(v1::Candidate& candidate) {
  candidate.clear_schedule();
  if (candidate.has_decision()) candidate.mutable_decision()->clear_choices();
  if (!candidate.has_evaluation()) return;
  v1::Evaluation& evaluation = *candidate.mutable_evaluation();
  evaluation.clear_variants();
  evaluation.clear_spans();
  evaluation.clear_checks();
  evaluation.clear_isolation();
  if (evaluation.has_profile()) {
    evaluation.mutable_profile()->clear_kernels();
    evaluation.mutable_profile()->clear_metrics();
  }
  if (evaluation.has_failure()) evaluation.mutable_failure()->clear_diagnostics();
  if (evaluation.has_measurement()) {
    evaluation.mutable_measurement()->clear_samples_seconds();
  }
  if (evaluation.has_confirmation()) {
    evaluation.mutable_confirmation()->clear_samples_seconds();
  }
  if (evaluation.has_confirmed()) {
    evaluation.mutable_confirmed()->mutable_baseline_measurement()->clear_samples_seconds();
  }
  for (v1::Comparison& comparison : *evaluation.mutable_comparisons()) {
    comparison.mutable_baseline_measurement()->clear_samples_seconds();
  }
}

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
    MTMC_ASSIGN_OR_RETURN(const filter::Filter filter,
                          filter::Filter::Parse(request.filter(), *v1::Candidate::descriptor()));
    const auto read = [&](int size, const std::string& token) -> absl::StatusOr<Page> {
      MTMC_ASSIGN_OR_RETURN(
          store::CandidatePage page,
          store_.ListCandidates({.job = request.parent(), .page_size = size, .page_token = token}));
      return Page{std::move(page.candidates), std::move(page.next_page_token)};
    };
    const auto shape = [&request](v1::Candidate& candidate) {
      if (request.view() == v1::CANDIDATE_VIEW_BASIC) TrimToBasic(candidate);
    };
    MTMC_ASSIGN_OR_RETURN(Page page, ReadPage<v1::Candidate>(filter, request.page_size(),
                                                             request.page_token(), read, shape));
    v1::ListCandidatesResponse response;
    for (v1::Candidate& candidate : page.records) {
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
