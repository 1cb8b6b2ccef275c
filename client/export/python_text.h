// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/program/program.h"
#include "kernel/program/scalar_type.h"

namespace mtmc::client {

// The parts of a program as Python says them in an exported file.

// `_mtmc_torch.float32`.
std::string TorchType(kernel::DataType type);

// `(2, 3)`, `(2,)`.
std::string Tuple(const std::vector<int64_t>& values);

// A tensor's name as a variable: a program may call one `in` or `lambda`.
std::string Variable(std::string_view name);

// A text as a literal.
std::string Quoted(std::string_view text);

// A number as a literal; infinities and NaN have none and become `float("inf")`.
std::string Real(double value);

// An argument of a library call, with its keyword.
std::string ArgumentText(const kernel::CallArgument& argument);

// The bytes of a kernel's scalar parameter.
std::string ScalarText(int64_t value, const kernel::ScalarType& type);
std::string ScalarText(double value, const kernel::ScalarType& type);

}  // namespace mtmc::client
