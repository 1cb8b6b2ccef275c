// SPDX-License-Identifier: Apache-2.0
#include "server/store/job_order.h"

#include <bit>
#include <limits>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/rpc/error.h"
#include "google/protobuf/util/time_util.h"

namespace mtmc::store {
namespace {

std::optional<JobOrder::Field> FieldOf(const std::string& word) {
  if (word == "create_time") return JobOrder::Field::kCreateTime;
  if (word == "end_time") return JobOrder::Field::kEndTime;
  if (word == "best_speedup") return JobOrder::Field::kBestSpeedup;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<JobOrder> ParseJobOrder(const std::string& order_by) {
  const std::vector<std::string> words = absl::StrSplit(order_by, ' ', absl::SkipEmpty());
  if (words.empty()) return JobOrder();
  const auto field = FieldOf(words[0]);
  const bool is_descending = words.size() == 2 && words[1] == "desc";
  if (field && (words.size() == 1 || is_descending)) {
    return JobOrder{.field = *field, .is_descending = is_descending};
  }
  return rpc::MakeError(
      absl::StatusCode::kInvalidArgument, "INVALID_ORDER",
      absl::StrCat("order_by \"", absl::CHexEscape(order_by),
                   "\" must be create_time, end_time or best_speedup, perhaps with \" desc\""));
}

std::optional<int64_t> OrderKey(const v1::Job& job, JobOrder::Field field) {
  if (field == JobOrder::Field::kEndTime) {
    if (!job.has_end_time()) return std::nullopt;
    return google::protobuf::util::TimeUtil::TimestampToNanoseconds(job.end_time());
  }
  // Numbers from 0 on are in the order of their bits. NaN is no number to order by.
  if (!job.has_best_speedup() || !(job.best_speedup() > 0)) return std::nullopt;
  return std::bit_cast<int64_t>(job.best_speedup());
}

int64_t LastKey(const JobOrder& order) {
  return order.is_descending ? -1 : std::numeric_limits<int64_t>::max();
}

PageMark MarkOf(const v1::Job& job, int64_t position, const JobOrder& order) {
  const int64_t key = order.field == JobOrder::Field::kCreateTime
                          ? position
                          : OrderKey(job, order.field).value_or(LastKey(order));
  return {.key = key, .position = position};
}

PageMark FirstMark(const JobOrder& order) {
  using Limits = std::numeric_limits<int64_t>;
  return {.key = order.is_descending ? Limits::max() : Limits::min(), .position = Limits::max()};
}

bool IsAfter(const PageMark& a, const PageMark& b, const JobOrder& order) {
  if (a.key != b.key) return order.is_descending ? b.key < a.key : b.key > a.key;
  return b.position < a.position;
}

std::string ListingOf(const JobOrder& order) {
  if (order == JobOrder()) return "";
  return absl::StrCat(" by ", static_cast<int>(order.field), order.is_descending ? " desc" : "");
}

}  // namespace mtmc::store
