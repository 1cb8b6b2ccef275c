// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "mtmc/pipe/v1/reference.pb.h"

namespace mtmc::worker {

// What the reference process printed as one line, protobuf JSON, in answer to
// request `sequence`. DATA_LOSS says what is wrong with it: the line is written
// by a process that runs the user's code, and may be anything.
absl::StatusOr<pipe::v1::ReferenceResponse> ParseResponseLine(std::string_view line,
                                                              int64_t sequence);

}  // namespace mtmc::worker
