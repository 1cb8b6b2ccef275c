// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace mtmc::worker {

// What a candidate did wrong, as far as a device or compiler can tell. A value:
// the process goes on, unless `is_context_lost`.
struct Failure {
  enum class Kind {
    kParse,
    kCheck,
    kCompile,
    kLaunch,
    kOutOfBounds,
    kInputChanged,
    kOutOfMemory,
    kLibrary,
  };
  Kind kind = Kind::kLaunch;
  // One sentence for people, lower case.
  std::string message;
  // Compiler log or device report; empty when there is none.
  std::string diagnostics = {};
  // The device context is broken for good; the process must be replaced.
  bool is_context_lost = false;
};

// Absent when nothing went wrong.
using MaybeFailure = std::optional<Failure>;

// A value, or what the candidate did wrong. Value type.
template <typename T>
class [[nodiscard]] Outcome {
 public:
  // NOLINTBEGIN(google-explicit-constructor): like StatusOr.
  Outcome(T value) : content_(std::move(value)) {}

  Outcome(Failure failure) : content_(std::move(failure)) {}

  // NOLINTEND(google-explicit-constructor)

  bool ok() const { return content_.index() == 0; }

  // REQUIRES: ok().
  T& operator*() & { return std::get<0>(content_); }

  const T& operator*() const& { return std::get<0>(content_); }

  T&& operator*() && { return std::get<0>(std::move(content_)); }

  T* operator->() { return &std::get<0>(content_); }

  const T* operator->() const { return &std::get<0>(content_); }

  // REQUIRES: !ok().
  const Failure& failure() const { return std::get<1>(content_); }

 private:
  std::variant<T, Failure> content_;
};

}  // namespace mtmc::worker
