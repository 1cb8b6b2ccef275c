// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/call_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/log.h"
#include "common/base/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace mtmc::worker {
namespace {

constexpr absl::Duration kSlow = absl::Milliseconds(100);

// Name of the field that is set in the message's oneof.
std::string KindOf(const google::protobuf::Message& request) {
  const auto* oneof = request.GetDescriptor()->FindOneofByName("request");
  if (oneof == nullptr) return "call";
  const auto* field = request.GetReflection()->GetOneofFieldDescriptor(request, oneof);
  return field == nullptr ? "call" : field->name();
}

}  // namespace

std::string CallName(std::string_view child, const google::protobuf::Message& request) {
  return absl::StrCat(base::ToAbsl(child), ".", KindOf(request));
}

void CallLog::Add(const std::string& call, absl::Duration time) {
  if (time > kSlow) {
    base::Log(base::LogLevel::kDebug, "a call took long",
              {{"call", call}, {"seconds", absl::ToDoubleSeconds(time)}});
  }
  absl::MutexLock lock(&mu_);
  Total& total = totals_[call];
  ++total.calls;
  total.time += time;
}

CallLog::Totals CallLog::Take() {
  absl::MutexLock lock(&mu_);
  return std::exchange(totals_, {});
}

void CallLog::Tell(const std::string& task) {
  std::string text;
  for (const auto& [call, total] : Take()) {
    absl::StrAppendFormat(&text, "%s%s %d x %.3g s", text.empty() ? "" : ", ", call, total.calls,
                          absl::ToDoubleSeconds(total.time));
  }
  base::Log(base::LogLevel::kDebug, "calls of children", {{"task", task}, {"calls", text}});
}

}  // namespace mtmc::worker
