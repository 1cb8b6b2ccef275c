// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/workloads.h"

#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace mtmc::worker {

std::vector<v1::Workload> MakeWorkloads(int hidden_seeds, bool has_distributions) {
  std::vector<v1::Workload> workloads;
  for (int seed = hidden_seeds; seed > 0; --seed) workloads.emplace_back().set_seed_index(seed);
  if (has_distributions) {
    for (int number = v1::Distribution_MIN + 1; number <= v1::Distribution_MAX; ++number) {
      v1::Workload& workload = workloads.emplace_back();
      workload.set_seed_index(hidden_seeds + number);
      workload.set_distribution(static_cast<v1::Distribution>(number));
    }
  }
  workloads.emplace_back();
  return workloads;
}

bool IsUnchanged(const v1::Workload& workload) {
  return workload.distribution() == v1::DISTRIBUTION_UNSPECIFIED;
}

std::string ToText(const v1::Workload& workload) {
  constexpr std::string_view kPrefix = "DISTRIBUTION_";
  std::string text = absl::StrCat("seed ", workload.seed_index());
  if (IsUnchanged(workload)) return text;
  std::string name = v1::Distribution_Name(workload.distribution()).substr(kPrefix.size());
  for (char& letter : name) letter = letter == '_' ? ' ' : absl::ascii_tolower(letter);
  return absl::StrCat(text, ", ", name);
}

}  // namespace mtmc::worker
