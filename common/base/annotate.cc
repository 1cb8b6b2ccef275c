// SPDX-License-Identifier: Apache-2.0
#include "common/base/annotate.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/base/string_view.h"

namespace mtmc::base {
namespace {

absl::Status WithMessage(const absl::Status& status, const std::string& message) {
  absl::Status result(status.code(), message);
  status.ForEachPayload([&result](absl::string_view type, const absl::Cord& payload) {
    result.SetPayload(type, payload);
  });
  return result;
}

}  // namespace

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return WithMessage(status, absl::StrCat(status.message(), " (", ToAbsl(context), ")"));
}

absl::Status Prefix(const absl::Status& status, std::string_view prefix) {
  if (status.ok()) return status;
  return WithMessage(status, absl::StrCat(ToAbsl(prefix), ": ", status.message()));
}

absl::Status SystemError(int error_number, std::string_view what) {
  return absl::ErrnoToStatus(error_number, ToAbsl(what));
}

}  // namespace mtmc::base
