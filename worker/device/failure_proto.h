// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mtmc/v1/evaluation.pb.h"
#include "worker/device/failure.h"

namespace mtmc::worker {

// `failure` as it was found in `stage`; diagnostics are cut to 64 KiB and made
// valid UTF-8, because compilers quote the source.
v1::Failure ToProto(const Failure& failure, v1::Stage stage);

// `text` cut to 64 KiB, every byte outside ASCII replaced by `?`.
std::string ToLog(const std::string& text);

}  // namespace mtmc::worker
