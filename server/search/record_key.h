// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "mtmc/v1/record.pb.h"

namespace mtmc::search {

// Name of a record within `projects/{project}`: one for each device class, dialect, precision
// and task.
std::string RecordName(const std::string& project, const v1::TunedRecord& record);

// What records of one store are looked up by: everything that is known of them at the start of
// a search, which is where and for what a program is to run, and the first group of the part.
std::string RecordAnchor(const v1::TunedRecord& record);

// INVALID_ARGUMENT with reason INVALID_RECORD unless the record is complete and its schedule is
// one of its task's nodes.
absl::Status CheckRecord(const v1::TunedRecord& record);

}  // namespace mtmc::search
