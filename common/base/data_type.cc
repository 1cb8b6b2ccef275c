// SPDX-License-Identifier: Apache-2.0
#include "common/base/data_type.h"

namespace mtmc::base {

int64_t ElementBytes(v1::DataType type) {
  switch (type) {
    case v1::DATA_TYPE_F64:
    case v1::DATA_TYPE_I64:
      return 8;
    case v1::DATA_TYPE_F32:
    case v1::DATA_TYPE_I32:
      return 4;
    case v1::DATA_TYPE_F16:
    case v1::DATA_TYPE_BF16:
    case v1::DATA_TYPE_I16:
      return 2;
    default:
      return 1;
  }
}

}  // namespace mtmc::base
