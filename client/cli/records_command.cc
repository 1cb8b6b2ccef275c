// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/job_view.h"
#include "client/cli/output.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"

namespace mtmc::client {
namespace {

// Thousands of records of whole networks.
constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;

std::string ParentOf(const RecordsOptions& options) {
  return absl::StrCat("projects/", options.common.project);
}

// The operators of a task, without their arguments: `matmul.default relu.default`.
std::string OperatorsOf(const v1::TunedRecord& record) {
  std::string operators;
  size_t begin = 0;
  while (begin < record.task().size()) {
    const std::string name = record.task().substr(begin, record.task().find('(', begin) - begin);
    absl::StrAppend(&operators, operators.empty() ? "" : " ",
                    absl::StartsWith(name, "aten::") ? name.substr(6) : name);
    begin = std::min(record.task().find('\n', begin), record.task().size() - 1) + 1;
  }
  return operators;
}

absl::StatusOr<ExitCode> List(const RecordsOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  MTMC_ASSIGN_OR_RETURN(const std::vector<v1::TunedRecord> records,
                        session.api->ListRecords(ParentOf(options), options.filter));
  if (options.common.is_json) {
    v1::ListRecordsResponse response;
    response.mutable_records()->Assign(records.begin(), records.end());
    PrintJson(response, std::cout);
    return kExitOk;
  }
  Table table({"record", "device", ">time", ">start", ">speedup", "computes"});
  for (const v1::TunedRecord& record : records) {
    table.AddRow({ShortName(record.name()), record.device_class().product(),
                  FormatSeconds(record.seconds()), FormatSeconds(record.start_seconds()),
                  FormatSpeedup(record.start_seconds() / record.seconds()), OperatorsOf(record)});
  }
  table.Print(std::cout);
  return kExitOk;
}

absl::StatusOr<ExitCode> Export(const RecordsOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  MTMC_ASSIGN_OR_RETURN(const std::vector<v1::TunedRecord> records,
                        session.api->ListRecords(ParentOf(options), options.filter));
  v1::ListRecordsResponse response;
  response.mutable_records()->Assign(records.begin(), records.end());
  if (options.file.empty()) {
    PrintJson(response, std::cout);
    return kExitOk;
  }
  std::ofstream file(options.file);
  PrintJson(response, file);
  file.close();
  if (!file) {
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "FILE_UNWRITABLE",
                          absl::StrCat("cannot write '", options.file, "'"));
  }
  std::cerr << records.size() << " records in " << options.file << "\n";
  return kExitOk;
}

absl::StatusOr<ExitCode> Import(const RecordsOptions& options) {
  const auto text = base::ReadFile(options.file, kMaxFileBytes);
  if (!text.ok()) {
    return rpc::MakeError(
        absl::StatusCode::kInvalidArgument, "FILE_UNREADABLE",
        absl::StrCat("cannot read '", options.file, "': ", text.status().message()));
  }
  v1::ListRecordsResponse exported;
  const auto parsed = google::protobuf::util::JsonStringToMessage(*text, &exported);
  if (!parsed.ok()) {
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_RECORD",
                          absl::StrCat("'", options.file, "' is not what 'mtmc records export' ",
                                       "writes: ", std::string(parsed.message())));
  }
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  MTMC_RETURN_IF_ERROR(session.api->ImportRecords(
      ParentOf(options), {exported.records().begin(), exported.records().end()}));
  std::cerr << exported.records_size() << " records imported\n";
  return kExitOk;
}

absl::StatusOr<ExitCode> Delete(const RecordsOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Session session, Connect(options.common));
  for (const std::string& name : options.names) {
    const std::string full_name = absl::StartsWith(name, "projects/")
                                      ? name
                                      : absl::StrCat(ParentOf(options), "/records/", name);
    MTMC_RETURN_IF_ERROR(session.api->DeleteRecord(full_name));
    if (!options.common.is_json) std::cout << ShortName(full_name) << " deleted\n";
  }
  return kExitOk;
}

}  // namespace

ExitCode RunRecordsList(const RecordsOptions& options) { return Finish(List(options)); }

ExitCode RunRecordsExport(const RecordsOptions& options) { return Finish(Export(options)); }

ExitCode RunRecordsImport(const RecordsOptions& options) { return Finish(Import(options)); }

ExitCode RunRecordsDelete(const RecordsOptions& options) { return Finish(Delete(options)); }

}  // namespace mtmc::client
