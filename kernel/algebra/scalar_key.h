// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "kernel/loops/scalar.h"

namespace mtmc::kernel {

// A short text that is equal for equal expressions and different for different
// ones. For maps; not for people.
std::string KeyOf(const ScalarPtr& scalar);

// Value of an integer literal.
int64_t IntegerOf(const Scalar& literal);

}  // namespace mtmc::kernel
