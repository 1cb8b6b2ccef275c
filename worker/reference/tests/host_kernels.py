# SPDX-License-Identifier: Apache-2.0
"""What kernels for a GPU need to be compiled for the host."""

import pathlib

SHIM = pathlib.Path(__file__).with_name("host_kernels.h")
TO_FLOAT = """
inline float ToFloat(Fp16 x) {
  _Float16 value;
  std::memcpy(&value, &x, sizeof value);
  return value;
}
inline float ToFloat(Bf16 x) {
  const unsigned bits = unsigned{x.bits} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
"""
