// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/verification.h"

#include <algorithm>
#include <utility>

#include "worker/verify/failure.h"

namespace mtmc::worker {
namespace {

// Whether `a` is closer to its bound than `b`, or further beyond it.
bool IsWorse(const v1::OutputError& a, const v1::OutputError& b) {
  if (a.tolerance_allowed() == 0 && b.tolerance_allowed() == 0) {
    return a.tolerance_needed() > b.tolerance_needed();
  }
  return a.tolerance_needed() * b.tolerance_allowed() >
         b.tolerance_needed() * a.tolerance_allowed();
}

}  // namespace

Verification Failed(v1::Failure failure) {
  Verification result;
  result.verdict = VerdictOf(failure.kind());
  result.failure = std::move(failure);
  return result;
}

void MergeInto(Verification& all, const Verification& one) {
  std::erase_if(all.satisfied, [&](v1::Precision precision) {
    return std::find(one.satisfied.begin(), one.satisfied.end(), precision) == one.satisfied.end();
  });
  all.kernelbench_allclose = all.kernelbench_allclose && one.kernelbench_allclose;
  for (size_t i = 0; i < std::min(all.errors.size(), one.errors.size()); ++i) {
    if (IsWorse(one.errors[i], all.errors[i])) all.errors[i] = one.errors[i];
  }
}

const std::string& WeakerOracle(const std::string& a, const std::string& b) {
  return b == "strict" || a == "equal" || a.empty() ? b : a;
}

}  // namespace mtmc::worker
