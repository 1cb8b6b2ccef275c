// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/workloads.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace mtmc::worker {

namespace {

constexpr int kFirstDistributionSeed = 100;

// From this number on the model is as its constructor made it, or zero or one but for one
// element of each tensor (worker/reference/mtmc_reference/parameters.py).
constexpr int kFirstAsMade = 200;

// Numbers of mixed inputs, of which each is another mixture, and how many there are. Every further
// one shows about as many mistakes as the one before: so they are as many as take about as long as
// all else that is asked of what may become the best.
constexpr int kFirstMixed = 300;
constexpr int kMixed = 2;
constexpr int kFirstMixedOfWinner = 400;
constexpr int kMixedOfWinner = 20;

// Numbers from which on all tensors of mixed inputs go together
// (worker/reference/mtmc_reference/together.py): two of each of its six kinds, fewer of
// eight where the graph has numbers for those.
constexpr int kFirstTogether = 500;
constexpr int kTogether = 12;

// Numbers of mixed inputs that go around a number which stands in the program and not in its
// problem (worker/reference/mtmc_reference/around.py). No other program has the same, so that
// what is expected there is computed for it alone: they are few.
constexpr int kFirstOwn = 600;
constexpr int kOwn = 8;

// Hidden seeds of a second session.
constexpr int kTimedAgain = 2;

// In which most mistakes show. The others are asked of those that may become the best: which
// these are nobody knows before they were timed.
constexpr std::array kUsual = {v1::DISTRIBUTION_NEGATED,      v1::DISTRIBUTION_OFFSET,
                               v1::DISTRIBUTION_HEAVY_TAILED, v1::DISTRIBUTION_RAMPS,
                               v1::DISTRIBUTION_REDRAWN,      v1::DISTRIBUTION_EXTREMES,
                               v1::DISTRIBUTION_SPECIAL_ROWS};

// Those that are asked for with that state, too: with other parameters, what is small, far from
// zero or of special rows may be hidden by a bias, and what is all on one side by signs.
constexpr std::array kAsMade = {v1::DISTRIBUTION_TIMES_001,       v1::DISTRIBUTION_NEGATED,
                                v1::DISTRIBUTION_OFFSET,          v1::DISTRIBUTION_SPECIAL_ROWS,
                                v1::DISTRIBUTION_PARAMETERS_ZERO, v1::DISTRIBUTION_PARAMETERS_ONE,
                                v1::DISTRIBUTION_DIRECTED};

v1::Workload WorkloadOf(v1::Distribution distribution, int first_seed = kFirstDistributionSeed) {
  v1::Workload workload;
  workload.set_seed_index(first_seed + distribution);
  workload.set_distribution(distribution);
  return workload;
}

void AddMixed(std::vector<v1::Workload>& workloads, int first_seed, int count) {
  for (int number = 0; number < count; ++number) {
    workloads.push_back(WorkloadOf(v1::DISTRIBUTION_MIXED, first_seed + number));
  }
}

v1::Workload HiddenSeed(int number) {
  v1::Workload workload;
  workload.set_seed_index(number);
  return workload;
}

}  // namespace

std::vector<v1::Workload> MakeWorkloads(int hidden_seeds, bool has_distributions) {
  std::vector<v1::Workload> workloads(1);
  if (has_distributions) {
    for (const v1::Distribution each : kUsual) workloads.push_back(WorkloadOf(each));
    AddMixed(workloads, kFirstMixed, kMixed);
  }
  for (int seed = hidden_seeds; seed > 0; --seed) workloads.push_back(HiddenSeed(seed));
  return workloads;
}

std::vector<v1::Workload> MakeWinnerWorkloads(bool has_numbers) {
  std::vector<v1::Workload> workloads;
  for (int number = v1::Distribution_MIN + 1; number <= v1::Distribution_MAX; ++number) {
    const auto each = static_cast<v1::Distribution>(number);
    if (std::find(kUsual.begin(), kUsual.end(), each) == kUsual.end()) {
      workloads.push_back(WorkloadOf(each));
    }
  }
  for (const v1::Distribution each : kAsMade) workloads.push_back(WorkloadOf(each, kFirstAsMade));
  // These first: of a slow model only the first ones are used.
  AddMixed(workloads, kFirstTogether, kTogether);
  AddMixed(workloads, kFirstMixedOfWinner, kMixedOfWinner);
  if (has_numbers) AddMixed(workloads, kFirstOwn, kOwn);
  for (int seed = kTimedAgain; seed > 0; --seed) workloads.push_back(HiddenSeed(seed));
  return workloads;
}

bool IsOwn(const v1::Workload& workload) {
  return workload.distribution() == v1::DISTRIBUTION_MIXED &&
         workload.seed_index() >= kFirstOwn + v1::DISTRIBUTION_MIXED;
}

bool IsUnchanged(const v1::Workload& workload) {
  return workload.distribution() == v1::DISTRIBUTION_UNSPECIFIED;
}

bool IsHiddenSeed(const v1::Workload& workload) {
  return IsUnchanged(workload) && workload.seed_index() != 0;
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
