// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/call_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace mtmc::worker {
namespace {

// Name of the field that is set in the message's oneof.
std::string KindOf(const google::protobuf::Message& request) {
  const auto* oneof = request.GetDescriptor()->FindOneofByName("request");
  if (oneof == nullptr) return "call";
  const auto* field = request.GetReflection()->GetOneofFieldDescriptor(request, oneof);
  return field == nullptr ? "call" : field->name();
}

}  // namespace

void CallLog::Add(std::string_view child, const google::protobuf::Message& request,
                  absl::Duration time) {
  const std::string name = absl::StrCat(base::ToAbsl(child), ".", KindOf(request));
  absl::MutexLock lock(&mu_);
  Total& total = totals_[name];
  ++total.calls;
  total.time += time;
}

CallLog::Totals CallLog::Take() {
  absl::MutexLock lock(&mu_);
  return std::exchange(totals_, {});
}

}  // namespace mtmc::worker
