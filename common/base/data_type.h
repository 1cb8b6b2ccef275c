// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "mtmc/v1/tensor.pb.h"

namespace mtmc::base {

// Size of one element in bytes; 1 of a type that is not known.
int64_t ElementBytes(v1::DataType type);

}  // namespace mtmc::base
