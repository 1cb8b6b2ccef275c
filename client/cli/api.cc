// SPDX-License-Identifier: Apache-2.0
#include "client/cli/api.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/id.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/rpc/patient_call.h"
#include "common/rpc/status.h"
#include "mtmc/v1/artifact.grpc.pb.h"
#include "mtmc/v1/candidate.grpc.pb.h"
#include "mtmc/v1/job.grpc.pb.h"
#include "mtmc/v1/quota.grpc.pb.h"
#include "mtmc/v1/record.grpc.pb.h"
#include "mtmc/v1/worker.grpc.pb.h"

namespace mtmc::client {
namespace {

// Every unary method answers from the store in milliseconds.
constexpr absl::Duration kCallTimeout = absl::Seconds(20);

// As the contract allows.
constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr int kPageSize = 500;

void SetDeadline(grpc::ClientContext& context, absl::Duration timeout) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
}

// Makes one call, again while the service is full. `call` is given the context of each
// try and returns a grpc::Status.
template <typename Call>
absl::Status Try(const Call& call) {
  base::RealClock clock;
  return rpc::PatientCall(clock, rpc::PatientCall::Options())([&] {
    grpc::ClientContext context;
    SetDeadline(context, kCallTimeout);
    return rpc::FromGrpc(call(context));
  });
}

// Calls one unary method; `method` is bound to its stub.
template <typename Response, typename Request, typename Method>
absl::StatusOr<Response> CallOnce(const Request& request, const Method& method) {
  Response response;
  MTMC_RETURN_IF_ERROR(Try([&](grpc::ClientContext& context) {
    response.Clear();
    return method(&context, request, &response);
  }));
  return response;
}

// Calls one method that answers with a job.
template <typename Response, typename Request, typename Method>
absl::StatusOr<v1::Job> CallForJob(const Request& request, const Method& method) {
  MTMC_ASSIGN_OR_RETURN(Response response, CallOnce<Response>(request, method));
  return std::move(*response.mutable_job());
}

// Calls a list method until its pages end or `limit` items are there.
template <typename Item, typename Request, typename Call, typename Items>
absl::StatusOr<std::vector<Item>> CallPaged(Request request, size_t limit, const Call& call,
                                            const Items& items) {
  std::vector<Item> all;
  do {
    request.set_page_size(static_cast<int32_t>(std::min<size_t>(kPageSize, limit - all.size())));
    MTMC_ASSIGN_OR_RETURN(auto response, call(request));
    const auto& page = items(response);
    all.insert(all.end(), page.begin(), page.end());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty() && all.size() < limit);
  return all;
}

}  // namespace

struct Api::Stubs {
  Stubs(const std::string& endpoint, const rpc::ChannelSecurity& security)
      : channel(rpc::MakeChannel(endpoint, {.security = security})),
        jobs(v1::JobService::NewStub(channel)),
        candidates(v1::CandidateService::NewStub(channel)),
        artifacts(v1::ArtifactService::NewStub(channel)),
        records(v1::RecordService::NewStub(channel)),
        quotas(v1::QuotaService::NewStub(channel)),
        workers(v1::WorkerService::NewStub(channel)) {}

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::JobService::Stub> jobs;
  std::unique_ptr<v1::CandidateService::Stub> candidates;
  std::unique_ptr<v1::ArtifactService::Stub> artifacts;
  std::unique_ptr<v1::RecordService::Stub> records;
  std::unique_ptr<v1::QuotaService::Stub> quotas;
  std::unique_ptr<v1::WorkerService::Stub> workers;

  absl::Mutex mu;
  // The watch under way, owned by WatchJob.
  grpc::ClientContext* watching ABSL_GUARDED_BY(mu) = nullptr;
};

Api::Api(const std::string& endpoint, const rpc::ChannelSecurity& security)
    : stubs_(std::make_unique<Stubs>(endpoint, security)) {}

Api::~Api() = default;

bool Api::IsServing(absl::Duration timeout) {
  return stubs_->channel->WaitForConnected(absl::ToChronoTime(absl::Now() + timeout));
}

absl::StatusOr<v1::Job> Api::CreateJob(const v1::CreateJobRequest& request) {
  return CallForJob<v1::CreateJobResponse>(
      request, [&](auto... a) { return stubs_->jobs->CreateJob(a...); });
}

absl::StatusOr<v1::Job> Api::GetJob(const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  return CallForJob<v1::GetJobResponse>(request,
                                        [&](auto... a) { return stubs_->jobs->GetJob(a...); });
}

absl::StatusOr<std::vector<v1::Job>> Api::ListJobs(const std::string& parent, int limit,
                                                   const std::string& filter,
                                                   const std::string& order_by) {
  v1::ListJobsRequest first;
  first.set_parent(parent);
  first.set_filter(filter);
  first.set_order_by(order_by);
  return CallPaged<v1::Job>(
      first, static_cast<size_t>(limit),
      [&](const v1::ListJobsRequest& request) {
        return CallOnce<v1::ListJobsResponse>(
            request, [&](auto... a) { return stubs_->jobs->ListJobs(a...); });
      },
      [](const v1::ListJobsResponse& response) { return response.jobs(); });
}

absl::StatusOr<v1::Job> Api::CancelJob(const std::string& name) {
  v1::CancelJobRequest request;
  request.set_name(name);
  request.set_request_id(base::MakeUuid4());
  return CallForJob<v1::CancelJobResponse>(
      request, [&](auto... a) { return stubs_->jobs->CancelJob(a...); });
}

absl::StatusOr<v1::Job> Api::PauseJob(const std::string& name) {
  v1::PauseJobRequest request;
  request.set_name(name);
  return CallForJob<v1::PauseJobResponse>(request,
                                          [&](auto... a) { return stubs_->jobs->PauseJob(a...); });
}

absl::StatusOr<v1::Job> Api::ResumeJob(const std::string& name) {
  v1::ResumeJobRequest request;
  request.set_name(name);
  return CallForJob<v1::ResumeJobResponse>(
      request, [&](auto... a) { return stubs_->jobs->ResumeJob(a...); });
}

absl::Status Api::DeleteJob(const std::string& name) {
  v1::DeleteJobRequest request;
  request.set_name(name);
  return CallOnce<v1::DeleteJobResponse>(request,
                                         [&](auto... a) { return stubs_->jobs->DeleteJob(a...); })
      .status();
}

absl::Status Api::WatchJob(const std::string& name, int64_t cursor,
                           const std::function<bool(const v1::JobEvent&)>& observe) {
  grpc::ClientContext context;
  {
    absl::MutexLock lock(&stubs_->mu);
    stubs_->watching = &context;
  }
  v1::WatchJobRequest request;
  request.set_name(name);
  request.set_cursor(cursor);
  auto reader = stubs_->jobs->WatchJob(&context, request);
  v1::WatchJobResponse response;
  bool goes_on = true;
  while (goes_on && reader->Read(&response)) goes_on = observe(response.event());
  if (!goes_on) context.TryCancel();
  const grpc::Status status = reader->Finish();
  {
    absl::MutexLock lock(&stubs_->mu);
    stubs_->watching = nullptr;
  }
  return goes_on ? rpc::FromGrpc(status) : absl::OkStatus();
}

void Api::StopWatching() {
  absl::MutexLock lock(&stubs_->mu);
  if (stubs_->watching != nullptr) stubs_->watching->TryCancel();
}

absl::StatusOr<v1::Candidate> Api::GetCandidate(const std::string& name) {
  v1::GetCandidateRequest request;
  request.set_name(name);
  MTMC_ASSIGN_OR_RETURN(auto response, CallOnce<v1::GetCandidateResponse>(request, [&](auto... a) {
                          return stubs_->candidates->GetCandidate(a...);
                        }));
  return std::move(*response.mutable_candidate());
}

absl::StatusOr<std::vector<v1::Candidate>> Api::ListCandidates(const std::string& job,
                                                               v1::CandidateView view,
                                                               const std::string& filter) {
  v1::ListCandidatesRequest first;
  first.set_parent(job);
  first.set_view(view);
  first.set_filter(filter);
  return CallPaged<v1::Candidate>(
      first, SIZE_MAX,
      [&](const v1::ListCandidatesRequest& request) {
        return CallOnce<v1::ListCandidatesResponse>(
            request, [&](auto... a) { return stubs_->candidates->ListCandidates(a...); });
      },
      [](const v1::ListCandidatesResponse& response) { return response.candidates(); });
}

absl::StatusOr<v1::Digest> Api::Upload(const std::string& bytes) {
  v1::UploadArtifactResponse response;
  const std::string sha256 = base::Sha256(bytes).sha256_hex;
  MTMC_RETURN_IF_ERROR(Try([&](grpc::ClientContext& context) {
    response.Clear();
    auto writer = stubs_->artifacts->UploadArtifact(&context, &response);
    v1::UploadArtifactRequest request;
    request.mutable_digest()->set_sha256(sha256);
    request.mutable_digest()->set_size_bytes(static_cast<int64_t>(bytes.size()));
    size_t sent = 0;
    do {
      request.set_chunk(bytes.substr(sent, kChunkBytes));
      sent += request.chunk().size();
      // A refused write shows in Finish.
      if (!writer->Write(request)) break;
      request.clear_digest();
    } while (sent < bytes.size());
    writer->WritesDone();
    return writer->Finish();
  }));
  return response.digest();
}

absl::StatusOr<std::string> Api::Download(const v1::Digest& digest) {
  v1::DownloadArtifactRequest request;
  *request.mutable_digest() = digest;
  std::string bytes;
  MTMC_RETURN_IF_ERROR(Try([&](grpc::ClientContext& context) {
    bytes.clear();
    auto reader = stubs_->artifacts->DownloadArtifact(&context, request);
    v1::DownloadArtifactResponse response;
    while (reader->Read(&response)) bytes += response.chunk();
    return reader->Finish();
  }));
  return bytes;
}

absl::StatusOr<std::vector<v1::TunedRecord>> Api::ListRecords(const std::string& parent,
                                                              const std::string& filter) {
  v1::ListRecordsRequest first;
  first.set_parent(parent);
  first.set_filter(filter);
  return CallPaged<v1::TunedRecord>(
      first, SIZE_MAX,
      [&](const v1::ListRecordsRequest& request) {
        return CallOnce<v1::ListRecordsResponse>(
            request, [&](auto... a) { return stubs_->records->ListRecords(a...); });
      },
      [](const v1::ListRecordsResponse& response) { return response.records(); });
}

absl::Status Api::ImportRecords(const std::string& parent,
                                const std::vector<v1::TunedRecord>& records) {
  for (size_t first = 0; first < records.size(); first += kPageSize) {
    v1::ImportRecordsRequest request;
    request.set_parent(parent);
    const size_t end = std::min(records.size(), first + kPageSize);
    for (size_t i = first; i < end; ++i) *request.add_records() = records[i];
    MTMC_RETURN_IF_ERROR(CallOnce<v1::ImportRecordsResponse>(request, [&](auto... a) {
                           return stubs_->records->ImportRecords(a...);
                         }).status());
  }
  return absl::OkStatus();
}

absl::Status Api::DeleteRecord(const std::string& name) {
  v1::DeleteRecordRequest request;
  request.set_name(name);
  return CallOnce<v1::DeleteRecordResponse>(
             request, [&](auto... a) { return stubs_->records->DeleteRecord(a...); })
      .status();
}

absl::StatusOr<std::vector<v1::Quota>> Api::ListQuotas(const std::string& filter) {
  v1::ListQuotasRequest first;
  first.set_filter(filter);
  return CallPaged<v1::Quota>(
      first, SIZE_MAX,
      [&](const v1::ListQuotasRequest& request) {
        return CallOnce<v1::ListQuotasResponse>(
            request, [&](auto... a) { return stubs_->quotas->ListQuotas(a...); });
      },
      [](const v1::ListQuotasResponse& response) { return response.quotas(); });
}

absl::StatusOr<v1::Quota> Api::GetQuota(const std::string& name) {
  v1::GetQuotaRequest request;
  request.set_name(name);
  MTMC_ASSIGN_OR_RETURN(v1::GetQuotaResponse response,
                        CallOnce<v1::GetQuotaResponse>(
                            request, [&](auto... a) { return stubs_->quotas->GetQuota(a...); }));
  return std::move(*response.mutable_quota());
}

absl::StatusOr<v1::Quota> Api::UpdateQuota(const v1::UpdateQuotaRequest& request) {
  MTMC_ASSIGN_OR_RETURN(v1::UpdateQuotaResponse response,
                        CallOnce<v1::UpdateQuotaResponse>(
                            request, [&](auto... a) { return stubs_->quotas->UpdateQuota(a...); }));
  return std::move(*response.mutable_quota());
}

absl::StatusOr<std::vector<v1::Worker>> Api::ListWorkers(const std::string& filter) {
  v1::ListWorkersRequest first;
  first.set_filter(filter);
  return CallPaged<v1::Worker>(
      first, SIZE_MAX,
      [&](const v1::ListWorkersRequest& request) {
        return CallOnce<v1::ListWorkersResponse>(
            request, [&](auto... a) { return stubs_->workers->ListWorkers(a...); });
      },
      [](const v1::ListWorkersResponse& response) { return response.workers(); });
}

absl::StatusOr<v1::Worker> Api::DrainWorker(const std::string& name, bool is_undrain) {
  if (is_undrain) {
    v1::UndrainWorkerRequest request;
    request.set_name(name);
    MTMC_ASSIGN_OR_RETURN(auto response,
                          CallOnce<v1::UndrainWorkerResponse>(request, [&](auto... a) {
                            return stubs_->workers->UndrainWorker(a...);
                          }));
    return std::move(*response.mutable_worker());
  }
  v1::DrainWorkerRequest request;
  request.set_name(name);
  MTMC_ASSIGN_OR_RETURN(auto response, CallOnce<v1::DrainWorkerResponse>(request, [&](auto... a) {
                          return stubs_->workers->DrainWorker(a...);
                        }));
  return std::move(*response.mutable_worker());
}

}  // namespace mtmc::client
