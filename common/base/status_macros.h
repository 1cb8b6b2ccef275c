// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Evaluates `expr`, an absl::Status, once. If it is not OK, returns it from the
// enclosing function, which returns absl::Status or absl::StatusOr.
// No text is added; add context with Annotate() of common/base/annotate.h.
#define MTMC_RETURN_IF_ERROR(expr)                              \
  do {                                                          \
    if (absl::Status mtmc_status = (expr); !mtmc_status.ok()) { \
      return mtmc_status;                                       \
    }                                                           \
  } while (false)

// Evaluates `expr`, an absl::StatusOr<T>, once. If it is not OK, returns its
// status from the enclosing function; otherwise moves the value into `lhs`,
// which may declare a variable. It expands to several statements: not for an
// unbraced `if`. A `lhs` with a comma outside parentheses does not parse.
#define MTMC_ASSIGN_OR_RETURN(lhs, expr) \
  MTMC_ASSIGN_OR_RETURN_IMPL_(MTMC_STATUS_CONCAT_(mtmc_status_or_, __LINE__), lhs, expr)

#define MTMC_ASSIGN_OR_RETURN_IMPL_(result, lhs, expr) \
  auto result = (expr);                                \
  if (!result.ok()) return std::move(result).status(); \
  lhs = *std::move(result)

#define MTMC_STATUS_CONCAT_(a, b) MTMC_STATUS_CONCAT_INNER_(a, b)
#define MTMC_STATUS_CONCAT_INNER_(a, b) a##b
