// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mtmc::testing {

// Matches an absl::Status by code, and by a part of its message where given.
class StatusMatcher : public Catch::MatcherBase<absl::Status> {
 public:
  StatusMatcher(absl::StatusCode code, std::optional<std::string> substring)
      : code_(code), substring_(std::move(substring)) {}

  bool match(const absl::Status& status) const override;
  std::string describe() const override;

 private:
  absl::StatusCode code_;
  std::optional<std::string> substring_;
};

// CHECK_THAT(result.status(), IsOk());
inline StatusMatcher IsOk() { return {absl::StatusCode::kOk, std::nullopt}; }

// CHECK_THAT(result.status(), StatusIs(absl::StatusCode::kNotFound, "job"));
inline StatusMatcher StatusIs(absl::StatusCode code) { return {code, std::nullopt}; }

inline StatusMatcher StatusIs(absl::StatusCode code, std::string substring) {
  return {code, std::move(substring)};
}

}  // namespace mtmc::testing

// Lets a failed assertion print the status instead of {?}.
namespace Catch {

template <>
struct StringMaker<absl::Status> {
  static std::string convert(const absl::Status& status) { return status.ToString(); }
};

}  // namespace Catch
