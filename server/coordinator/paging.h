// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/filter/filter.h"
#include "server/store/page_token.h"

namespace mtmc::coordinator {

// Records of one page that a listing answers.
template <typename Record>
struct FilteredPage {
  std::vector<Record> records;
  // Empty at the end.
  std::string next_page_token;
};

// The page of `records`, which are all that the caller asked for, that comes after the token,
// ordered by what `name_of` makes of each. Records may come and go between two pages: none of those
// that stay is missed, and none comes twice.
template <typename Record, typename NameOf>
absl::StatusOr<FilteredPage<Record>> PageByName(const std::string& listing,
                                                std::vector<Record> records, int page_size,
                                                const std::string& page_token, NameOf name_of) {
  MTMC_ASSIGN_OR_RETURN(const int size, store::EffectivePageSize(page_size));
  MTMC_ASSIGN_OR_RETURN(const std::string after, store::ParseNameToken(listing, page_token));
  std::erase_if(records, [&](const Record& record) { return name_of(record) <= after; });
  std::sort(records.begin(), records.end(), [&](const Record& a, const Record& b) {
    return std::string(name_of(a)) < std::string(name_of(b));
  });
  FilteredPage<Record> page;
  if (records.size() > static_cast<std::size_t>(size)) {
    records.erase(records.begin() + size, records.end());
    page.next_page_token = store::MakeNameToken(listing, name_of(records.back()));
  }
  page.records = std::move(records);
  return page;
}

// Those of `records` for which `text` holds, a filter of their type. INVALID_FILTER.
template <typename Record>
absl::StatusOr<std::vector<Record>> Filtered(std::vector<Record> records, const std::string& text) {
  MTMC_ASSIGN_OR_RETURN(const filter::Filter filter,
                        filter::Filter::Parse(text, *Record::descriptor()));
  std::erase_if(records, [&filter](const Record& record) { return !filter.Matches(record); });
  return records;
}

// Records that one call looks at: where few of them fit the filter, a page ends early and
// its token goes on, so that no call takes long.
inline constexpr int kMostScanned = 5'000;

// Bytes of records in one page: a message of 16 MiB with room.
inline constexpr std::size_t kMostPageBytes = std::size_t{12} << 20;

// The next page of what `filter` holds for. `read` reads a page of the store, of a size
// and from a token; `shape` makes of each record what is answered.
template <typename Record>
absl::StatusOr<FilteredPage<Record>> ReadPage(
    const filter::Filter& filter, int page_size, const std::string& page_token,
    const std::function<absl::StatusOr<FilteredPage<Record>>(int, const std::string&)>& read,
    const std::function<void(Record&)>& shape = {}) {
  MTMC_ASSIGN_OR_RETURN(const int size, store::EffectivePageSize(page_size));
  FilteredPage<Record> page{.records = {}, .next_page_token = page_token};
  std::size_t bytes = 0;
  int scanned = 0;
  // Few at a time where records are large, so that a page can end before its limit.
  int step = size;
  do {
    const int wanted = std::min(step, size - static_cast<int>(page.records.size()));
    MTMC_ASSIGN_OR_RETURN(FilteredPage<Record> part, read(wanted, page.next_page_token));
    const int num_read = static_cast<int>(part.records.size());
    std::erase_if(part.records,
                  [&filter](const Record& record) { return !filter.Matches(record); });
    std::size_t part_bytes = 0;
    for (Record& record : part.records) {
      if (shape) shape(record);
      part_bytes += record.ByteSizeLong();
    }
    if (bytes + part_bytes > kMostPageBytes) {
      if (!page.records.empty() && wanted == 1) return page;
      if (wanted > 1) {
        step = std::max(1, wanted / 2);
        continue;
      }
    }
    scanned += num_read;
    bytes += part_bytes;
    std::move(part.records.begin(), part.records.end(), std::back_inserter(page.records));
    page.next_page_token = std::move(part.next_page_token);
  } while (!page.next_page_token.empty() && scanned < kMostScanned &&
           static_cast<int>(page.records.size()) < size);
  return page;
}

}  // namespace mtmc::coordinator
