// SPDX-License-Identifier: Apache-2.0
#include "kernel/writer/dialect_text.h"

#include <cmath>
#include <cstdio>

#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

char DimensionLetter(int dimension) { return "xyz"[dimension]; }

}  // namespace

std::string DialectText::StorageType(DataType type) const {
  switch (type) {
    case DataType::kF64:
      return "double";
    case DataType::kF32:
      return "float";
    case DataType::kF16:
      return is_cuda() ? "__half" : "half";
    case DataType::kBf16:
      return is_cuda() ? "__nv_bfloat16" : "ushort";
    case DataType::kI64:
      return is_cuda() ? "long long" : "long";
    case DataType::kI32:
      return "int";
    case DataType::kI16:
      return "short";
    case DataType::kI8:
      return is_cuda() ? "signed char" : "char";
    case DataType::kU8:
      return is_cuda() ? "unsigned char" : "uchar";
    case DataType::kBool:
      return is_cuda() ? "bool" : "uchar";
  }
  return "float";
}

std::string DialectText::ComputeType(DataType type) const {
  switch (type) {
    case DataType::kF16:
    case DataType::kBf16:
      return "float";
    case DataType::kI16:
    case DataType::kI8:
    case DataType::kU8:
      return "int";
    case DataType::kBool:
      return "bool";
    default:
      return StorageType(type);
  }
}

std::string DialectText::Parameter(std::string_view name, DataType type, bool is_written) const {
  const std::string element = Concat(is_written ? "" : "const ", StorageType(type), "*");
  if (is_cuda()) return Concat(element, " __restrict__ ", name);
  return Concat("__global ", element, " restrict ", name);
}

std::string DialectText::KernelHead(std::string_view name, std::string_view threads) const {
  if (is_cuda()) {
    return Concat("extern \"C\" __global__ void __launch_bounds__(", threads, ") ", name);
  }
  return Concat("__kernel __attribute__((reqd_work_group_size(", threads, ", 1, 1))) void ", name);
}

std::string DialectText::ThreadId(int dimension) const {
  if (is_cuda()) return Concat("threadIdx.", std::string(1, DimensionLetter(dimension)));
  return Concat("get_local_id(", dimension, ")");
}

std::string DialectText::BlockId(int dimension) const {
  if (is_cuda()) return Concat("blockIdx.", std::string(1, DimensionLetter(dimension)));
  return Concat("get_group_id(", dimension, ")");
}

std::string DialectText::GridSize(int dimension) const {
  if (is_cuda()) return Concat("gridDim.", std::string(1, DimensionLetter(dimension)));
  return Concat("get_num_groups(", dimension, ")");
}

std::string DialectText::Barrier() const {
  return is_cuda() ? "__syncthreads();" : "barrier(CLK_LOCAL_MEM_FENCE);";
}

std::string DialectText::SharedArray(std::string_view type, std::string_view name,
                                     std::string_view count) const {
  return Concat(is_cuda() ? "__shared__ " : "__local ", type, " ", name, "[", count, "];");
}

std::string DialectText::ShuffleDown(std::string_view variable, std::string_view offset) const {
  return Concat("__shfl_down_sync(0xffffffffu, ", variable, ", ", offset, ")");
}

std::string DialectText::ShuffleXor(std::string_view variable, std::string_view mask) const {
  return Concat("__shfl_xor_sync(0xffffffffu, ", variable, ", ", mask, ")");
}

std::string DialectText::UnrollPragma() const { return "#pragma unroll"; }

std::string DialectText::FunctionQualifier() const {
  return is_cuda() ? "__device__ __forceinline__" : "static inline";
}

std::string DialectText::Load(std::string_view tensor, DataType type,
                              std::string_view offset) const {
  const std::string element = Concat(tensor, "[", offset, "]");
  switch (type) {
    case DataType::kF16:
      if (is_cuda()) return Concat("__half2float(", element, ")");
      return Concat("vload_half(", offset, ", ", tensor, ")");
    case DataType::kBf16:
      if (is_cuda()) return Concat("__bfloat162float(", element, ")");
      return Concat("bf16_to_float(", element, ")");
    case DataType::kBool:
      return is_cuda() ? element : Concat("(", element, " != 0)");
    default:
      return element;
  }
}

std::string DialectText::Store(std::string_view tensor, DataType type, std::string_view offset,
                               std::string_view value) const {
  const std::string element = Concat(tensor, "[", offset, "]");
  switch (type) {
    case DataType::kF16:
      if (is_cuda()) return Concat(element, " = __float2half_rn(", value, ");");
      return Concat("vstore_half(", value, ", ", offset, ", ", tensor, ");");
    case DataType::kBf16:
      if (is_cuda()) return Concat(element, " = __float2bfloat16_rn(", value, ");");
      return Concat(element, " = float_to_bf16(", value, ");");
    default:
      return Concat(element, " = ", value, ";");
  }
}

std::string DialectText::FloatLiteral(double value, DataType type) const {
  const bool is_double = type == DataType::kF64;
  // What no float holds is an infinity or zero there, as in PyTorch; compilers refuse the digits.
  if (!is_double) value = static_cast<float>(value);
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  char digits[40];
  const int most = is_double ? 17 : 9;
  // The shortest decimal that reads back as the same value.
  for (int precision = 1; precision <= most; ++precision) {
    std::snprintf(digits, sizeof(digits), "%.*g", precision, value);
    const double back = std::strtod(digits, nullptr);
    if ((is_double ? back : static_cast<float>(back)) == value) break;
  }
  std::string text = digits;
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return is_double ? text : text + "f";
}

std::string DialectText::IntegerLiteral(int64_t value, DataType type) const {
  if (type == DataType::kBool) return value != 0 ? "true" : "false";
  if (value == INT64_MIN) return is_cuda() ? "(-9223372036854775807LL - 1)" : "LONG_MIN";
  std::string text = std::to_string(value);
  if (value > INT32_MAX || value <= INT32_MIN) text += is_cuda() ? "LL" : "L";
  return text;
}

std::string DialectText::Cast(std::string_view operand, DataType from, DataType to) const {
  if (from == to) return std::string(operand);
  if (to == DataType::kBool) return Concat("(", operand, " != 0)");
  if (to == DataType::kF16) {
    const std::string value = from == DataType::kF32 || from == DataType::kBf16
                                  ? std::string(operand)
                                  : Concat("(float)(", operand, ")");
    return Concat("round_to_f16(", value, ")");
  }
  if (to == DataType::kBf16) {
    const std::string value = from == DataType::kF32 || from == DataType::kF16
                                  ? std::string(operand)
                                  : Concat("(float)(", operand, ")");
    return Concat("round_to_bf16(", value, ")");
  }
  if (to == DataType::kF32 && (from == DataType::kF16 || from == DataType::kBf16)) {
    return std::string(operand);
  }
  return Concat("(", StorageType(to), ")(", operand, ")");
}

}  // namespace mtmc::kernel
