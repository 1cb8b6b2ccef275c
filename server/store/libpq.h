// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"

namespace mtmc::store {

// Opens PostgreSQL's client library. The functions of that library that this program
// uses are defined in libpq.cc and forward to it, so that a coordinator with SQLite
// starts on a host without it. Call before any of them. Thread-safe; cheap after
// the first call. FAILED_PRECONDITION with reason LIBPQ_MISSING.
absl::Status OpenLibpq();

// Whether that library has a pipeline mode: from version 14 on. Thread-safe.
bool HasPostgresPipelines();

}  // namespace mtmc::store
