// SPDX-License-Identifier: Apache-2.0
#include "worker/reference/response_line.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"

namespace mtmc::worker {

absl::StatusOr<pipe::v1::ReferenceResponse> ParseResponseLine(std::string_view line,
                                                              int64_t sequence) {
  pipe::v1::ReferenceResponse response;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = false;
  const auto status =
      google::protobuf::util::JsonStringToMessage({line.data(), line.size()}, &response, options);
  if (!status.ok()) return absl::DataLossError(status.message().as_string());
  if (response.sequence() != sequence) {
    return absl::DataLossError(
        absl::StrCat("it answers request ", response.sequence(), ", not ", sequence));
  }
  return response;
}

}  // namespace mtmc::worker
