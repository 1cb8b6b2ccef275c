// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/filter/filter.h"
#include "common/rpc/error.h"
#include "common/rpc/unary.h"
#include "google/protobuf/util/time_util.h"
#include "mtmc/v1/record.grpc.pb.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/paging.h"
#include "server/coordinator/relay.h"
#include "server/coordinator/resource_name.h"
#include "server/coordinator/services.h"
#include "server/search/record_key.h"
#include "server/store/job_store.h"

namespace mtmc::coordinator {
namespace {

using google::protobuf::util::TimeUtil;

using Page = FilteredPage<v1::TunedRecord>;

// As many as a page of a list has.
constexpr int kMaxImported = 500;

absl::Status InvalidRecord(int index, const absl::Status& status) {
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, rpc::ErrorReason(status),
                        absl::StrCat("records[", index, "]: ", status.message()));
}

class RecordService final : public v1::RecordService::CallbackService {
 public:
  RecordService(Relay& relay, store::JobStore& store, base::Executor& executor)
      : relay_(relay), store_(store), executor_(executor) {}

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
    return relay_.Serve<v1::RecordService>(context, *request, *response, executor_,
                                           &v1::RecordService::Stub::ImportRecords, Import);
  }

  grpc::ServerUnaryReactor* DeleteRecord(grpc::CallbackServerContext* context,
                                         const v1::DeleteRecordRequest* request,
                                         v1::DeleteRecordResponse* response) override {
    return relay_.Serve<v1::RecordService>(context, *request, *response, executor_,
                                           &v1::RecordService::Stub::DeleteRecord, Delete);
  }

 private:
  absl::StatusOr<v1::ListRecordsResponse> List(const v1::ListRecordsRequest& request) {
    MTMC_RETURN_IF_ERROR(CheckProjectName(request.parent()));
    MTMC_ASSIGN_OR_RETURN(const filter::Filter filter,
                          filter::Filter::Parse(request.filter(), *v1::TunedRecord::descriptor()));
    const auto read = [&](int size, const std::string& token) -> absl::StatusOr<Page> {
      MTMC_ASSIGN_OR_RETURN(store::RecordPage page, store_.ListRecords({.project = request.parent(),
                                                                        .page_size = size,
                                                                        .page_token = token}));
      return Page{std::move(page.records), std::move(page.next_page_token)};
    };
    MTMC_ASSIGN_OR_RETURN(const Page page, ReadPage<v1::TunedRecord>(filter, request.page_size(),
                                                                     request.page_token(), read));
    v1::ListRecordsResponse response;
    response.mutable_records()->Assign(page.records.begin(), page.records.end());
    response.set_next_page_token(page.next_page_token);
    return response;
  }

  static absl::StatusOr<v1::ImportRecordsResponse> Import(Coordinator& coordinator,
                                                          const v1::ImportRecordsRequest& request) {
    MTMC_RETURN_IF_ERROR(CheckProjectName(request.parent()));
    if (request.records_size() > kMaxImported) {
      return rpc::MakeError(absl::StatusCode::kInvalidArgument, "TOO_MANY_RECORDS",
                            absl::StrCat("records has ", request.records_size(),
                                         " entries, at most ", kMaxImported, " are allowed"));
    }
    std::vector<store::LearnedRecord> records;
    for (int i = 0; i < request.records_size(); ++i) {
      v1::TunedRecord record = request.records(i);
      const absl::Status status = search::CheckRecord(record);
      if (!status.ok()) return InvalidRecord(i, status);
      record.set_name(search::RecordName(request.parent(), record));
      record.clear_job();
      *record.mutable_update_time() =
          TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(absl::Now()));
      std::string anchor = search::RecordAnchor(record);
      records.push_back({.record = std::move(record), .anchor = std::move(anchor)});
    }
    MTMC_RETURN_IF_ERROR(coordinator.ImportRecords(records));
    return v1::ImportRecordsResponse();
  }

  static absl::StatusOr<v1::DeleteRecordResponse> Delete(Coordinator& coordinator,
                                                         const v1::DeleteRecordRequest& request) {
    MTMC_RETURN_IF_ERROR(CheckRecordName(request.name()));
    MTMC_RETURN_IF_ERROR(coordinator.DeleteRecord(request.name()));
    return v1::DeleteRecordResponse();
  }

  Relay& relay_;
  store::JobStore& store_;
  base::Executor& executor_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeRecordService(Relay& relay, store::JobStore& store,
                                                 base::Executor& executor) {
  return std::make_unique<RecordService>(relay, store, executor);
}

}  // namespace mtmc::coordinator
