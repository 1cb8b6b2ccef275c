// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "kernel/program/signature.h"
#include "worker/device/device.h"

namespace mtmc::worker {

// `value` in the representation of a kernel parameter of `type`: integers wrap,
// reals round to the nearest. Absent for a vector type, and for a real that is
// passed where the kernel takes an integer.
std::optional<ScalarArgument> MakeScalar(const kernel::ScalarType& type,
                                         std::variant<int64_t, double> value);

}  // namespace mtmc::worker
