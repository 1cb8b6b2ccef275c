// SPDX-License-Identifier: Apache-2.0
#include "server/s3/answer.h"

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <optional>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace mtmc::s3 {
namespace {

using boost::property_tree::ptree;

// Answers have four levels. The parser calls itself for each.
constexpr int kMaxDepth = 32;

// Whether the parser, which takes more than XML, can go no deeper than that. Refuses what
// no answer has: comments, `<` within a tag, instructions after the first.
bool IsShallow(const std::string& body) {
  int depth = 0;
  for (size_t at = body.find('<'); at != std::string::npos; at = body.find('<', at + 1)) {
    const size_t end = body.find_first_of("<>", at + 1);
    if (end == std::string::npos || body[end] == '<') return false;
    const std::string tag = body.substr(at, end - at);
    if (tag.rfind("<!", 0) == 0) return false;
    if (tag.rfind("<?", 0) == 0) {
      if (at != 0 || tag.back() != '?') return false;
    } else if (tag.rfind("</", 0) == 0) {
      --depth;
    } else {
      // With quotes the end may be within them.
      const bool is_closed = tag.back() == '/' && tag.find_first_of("'\"") == std::string::npos;
      if (!is_closed) ++depth;
    }
    if (depth < 0 || depth > kMaxDepth) return false;
  }
  return true;
}

// The element `root`; nothing if the answer is another, or no XML.
std::optional<ptree> ParseElement(const std::string& body, const char* root) {
  if (!IsShallow(body)) return std::nullopt;
  try {
    std::istringstream stream(body);
    ptree tree;
    boost::property_tree::read_xml(stream, tree);
    const auto element = tree.get_child_optional(root);
    if (!element) return std::nullopt;
    return *element;
  } catch (const boost::property_tree::ptree_error&) {
    return std::nullopt;
  }
}

std::string TextOf(const ptree& element, const char* name) {
  return element.get<std::string>(name, "");
}

}  // namespace

ErrorAnswer ParseError(const std::string& body) {
  const auto error = ParseElement(body, "Error");
  if (!error) return {};
  return {.code = TextOf(*error, "Code"), .message = TextOf(*error, "Message")};
}

absl::StatusOr<Listing> ParseListing(const std::string& body) {
  const auto result = ParseElement(body, "ListBucketResult");
  if (!result) return absl::DataLossError("the answer of S3 is no listing of a bucket");
  Listing listing;
  for (const auto& [name, element] : *result) {
    if (name != "Contents") continue;
    Object object;
    object.key = TextOf(element, "Key");
    std::string error;
    const std::string modified = TextOf(element, "LastModified");
    if (object.key.empty() || !absl::SimpleAtoi(TextOf(element, "Size"), &object.size_bytes) ||
        !absl::ParseTime(absl::RFC3339_full, modified, &object.modified, &error)) {
      return absl::DataLossError(
          absl::StrCat("S3 lists \"", object.key, "\" without its size or time"));
    }
    listing.objects.push_back(std::move(object));
  }
  if (TextOf(*result, "IsTruncated") != "true") return listing;
  listing.continuation = TextOf(*result, "NextContinuationToken");
  if (listing.continuation.empty()) {
    return absl::DataLossError("S3 ends a listing in its middle");
  }
  return listing;
}

absl::StatusOr<std::string> ParseUploadId(const std::string& body) {
  const auto result = ParseElement(body, "InitiateMultipartUploadResult");
  std::string id = result ? TextOf(*result, "UploadId") : "";
  if (id.empty()) return absl::DataLossError("the answer of S3 has no id of an upload");
  return id;
}

}  // namespace mtmc::s3
