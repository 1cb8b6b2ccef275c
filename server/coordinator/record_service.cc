// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "common/rpc/unary.h"
#include "google/protobuf/util/time_util.h"
#include "mtmc/v1/record.grpc.pb.h"
#include "server/coordinator/resource_name.h"
#include "server/coordinator/services.h"
#include "server/search/record_key.h"
#include "server/store/job_store.h"

namespace mtmc::coordinator {
namespace {

using google::protobuf::util::TimeUtil;

// As many as a page of a list has.
constexpr int kMaxImported = 500;

absl::Status InvalidRecord(int index, const absl::Status& status) {
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, rpc::ErrorReason(status),
                        absl::StrCat("records[", index, "]: ", status.message()));
}

// Records belong to no job, so that every coordinator serves and writes them.
class RecordService final : public v1::RecordService::CallbackService {
 public:
  RecordService(store::JobStore& store, base::Executor& executor)
      : store_(store), executor_(executor) {}

  grpc::ServerUnaryReactor* ListRecords(grpc::CallbackServerContext* context,
                                        const v1::ListRecordsRequest* request,
                                        v1::ListRecordsResponse* response) override {
    return rpc::ServeUnary(
        context, *request, *response, executor_,
        [this](const v1::ListRecordsRequest& list, const rpc::Call&) { return List(list); });
  }

  grpc::ServerUnaryReactor* ImportRecords(grpc::CallbackServerContext* context,
                                          const v1::ImportRecordsRequest* request,
                                          v1::ImportRecordsResponse* response) override {
    return rpc::ServeUnary(context, *request, *response, executor_,
                           [this](const v1::ImportRecordsRequest& import, const rpc::Call&) {
                             return Import(import);
                           });
  }

  grpc::ServerUnaryReactor* DeleteRecord(grpc::CallbackServerContext* context,
                                         const v1::DeleteRecordRequest* request,
                                         v1::DeleteRecordResponse* response) override {
    return rpc::ServeUnary(context, *request, *response, executor_,
                           [this](const v1::DeleteRecordRequest& remove, const rpc::Call&) {
                             return Delete(remove.name());
                           });
  }

 private:
  absl::StatusOr<v1::ListRecordsResponse> List(const v1::ListRecordsRequest& request) {
    MTMC_RETURN_IF_ERROR(CheckProjectName(request.parent()));
    MTMC_ASSIGN_OR_RETURN(const store::RecordPage page,
                          store_.ListRecords({.project = request.parent(),
                                              .page_size = request.page_size(),
                                              .page_token = request.page_token()}));
    v1::ListRecordsResponse response;
    response.mutable_records()->Assign(page.records.begin(), page.records.end());
    response.set_next_page_token(page.next_page_token);
    return response;
  }

  absl::StatusOr<v1::ImportRecordsResponse> Import(const v1::ImportRecordsRequest& request) {
    MTMC_RETURN_IF_ERROR(CheckProjectName(request.parent()));
    if (request.records_size() > kMaxImported) {
      return rpc::MakeError(absl::StatusCode::kInvalidArgument, "TOO_MANY_RECORDS",
                            absl::StrCat("records has ", request.records_size(),
                                         " entries, at most ", kMaxImported, " are allowed"));
    }
    store::Write write;
    for (int i = 0; i < request.records_size(); ++i) {
      v1::TunedRecord record = request.records(i);
      const absl::Status status = search::CheckRecord(record);
      if (!status.ok()) return InvalidRecord(i, status);
      record.set_name(search::RecordName(request.parent(), record));
      record.clear_job();
      *record.mutable_update_time() =
          TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(absl::Now()));
      std::string anchor = search::RecordAnchor(record);
      write.learned.push_back({.record = std::move(record), .anchor = std::move(anchor)});
    }
    MTMC_RETURN_IF_ERROR(store_.Commit(write));
    return v1::ImportRecordsResponse();
  }

  absl::StatusOr<v1::DeleteRecordResponse> Delete(const std::string& name) {
    MTMC_RETURN_IF_ERROR(CheckRecordName(name));
    MTMC_RETURN_IF_ERROR(store_.LookupRecord(name).status());
    MTMC_RETURN_IF_ERROR(store_.Commit({.refuted = {name}}));
    return v1::DeleteRecordResponse();
  }

  store::JobStore& store_;
  base::Executor& executor_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeRecordService(store::JobStore& store, base::Executor& executor) {
  return std::make_unique<RecordService>(store, executor);
}

}  // namespace mtmc::coordinator
