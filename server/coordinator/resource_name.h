// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"

namespace mtmc::coordinator {

// Checks of resource names. INVALID_ARGUMENT with reason INVALID_NAME and the
// pattern that was expected.

// `projects/{project}`
absl::Status CheckProjectName(const std::string& name);

// `projects/{project}/jobs/{job}`
absl::Status CheckJobName(const std::string& name);

// `projects/{project}/jobs/{job}/candidates/{candidate}`
absl::Status CheckCandidateName(const std::string& name);

// `projects/{project}/records/{record}`
absl::Status CheckRecordName(const std::string& name);

// `projects/{project}/quota`
absl::Status CheckQuotaName(const std::string& name);

// `workers/{worker}`
absl::Status CheckWorkerName(const std::string& name);

// A chosen id or nothing. INVALID_ARGUMENT with reason INVALID_NAME.
absl::Status CheckResourceId(const std::string& field, const std::string& id);

// A UUID or nothing. INVALID_ARGUMENT with reason INVALID_REQUEST_ID.
absl::Status CheckRequestId(const std::string& request_id);

}  // namespace mtmc::coordinator
