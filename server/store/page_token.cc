// SPDX-License-Identifier: Apache-2.0
#include "server/store/page_token.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/digest.h"
#include "common/rpc/error.h"

namespace mtmc::store {
namespace {

constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 500;

// Eight digits tell a token of another listing from ours; they are no secret.
std::string ListingTag(const std::string& listing) {
  return base::Sha256(listing).sha256_hex.substr(0, 8);
}

absl::Status Foreign(const std::string& token) {
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_PAGE_TOKEN",
                        absl::StrCat("page_token \"", absl::CHexEscape(token),
                                     "\" is not from this listing; list again without it"));
}

}  // namespace

std::string MakePageToken(const std::string& listing, int64_t position) {
  return absl::WebSafeBase64Escape(absl::StrCat("1:", ListingTag(listing), ":", position));
}

std::string MakePageToken(const std::string& listing, const PageMark& mark) {
  return absl::WebSafeBase64Escape(
      absl::StrCat("2:", ListingTag(listing), ":", mark.key, ":", mark.position));
}

std::string MakeNameToken(const std::string& listing, const std::string& name) {
  return absl::WebSafeBase64Escape(absl::StrCat("3:", ListingTag(listing), ":", name));
}

absl::StatusOr<std::string> ParseNameToken(const std::string& listing, const std::string& token) {
  if (token.empty()) return "";
  std::string text;
  if (absl::WebSafeBase64Unescape(token, &text)) {
    // A name may hold anything.
    const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 2));
    if (parts.size() == 3 && parts[0] == "3" && parts[1] == ListingTag(listing)) return parts[2];
  }
  return Foreign(token);
}

absl::StatusOr<int64_t> ParsePageToken(const std::string& listing, const std::string& token,
                                       int64_t start) {
  if (token.empty()) return start;
  std::string text;
  int64_t position = 0;
  if (absl::WebSafeBase64Unescape(token, &text)) {
    const std::vector<std::string> parts = absl::StrSplit(text, ':');
    if (parts.size() == 3 && parts[0] == "1" && parts[1] == ListingTag(listing) &&
        absl::SimpleAtoi(parts[2], &position)) {
      return position;
    }
  }
  return Foreign(token);
}

absl::StatusOr<PageMark> ParsePageMark(const std::string& listing, const std::string& token,
                                       const PageMark& start) {
  if (token.empty()) return start;
  std::string text;
  PageMark mark;
  if (absl::WebSafeBase64Unescape(token, &text)) {
    const std::vector<std::string> parts = absl::StrSplit(text, ':');
    if (parts.size() == 4 && parts[0] == "2" && parts[1] == ListingTag(listing) &&
        absl::SimpleAtoi(parts[2], &mark.key) && absl::SimpleAtoi(parts[3], &mark.position)) {
      return mark;
    }
  }
  return Foreign(token);
}

absl::StatusOr<int> EffectivePageSize(int page_size) {
  if (page_size < 0) {
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_PAGE_SIZE",
                          absl::StrCat("page_size is ", page_size, ", must be at least 0"));
  }
  if (page_size == 0) return kDefaultPageSize;
  return page_size > kMaxPageSize ? kMaxPageSize : page_size;
}

}  // namespace mtmc::store
