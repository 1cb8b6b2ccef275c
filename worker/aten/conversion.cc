// SPDX-License-Identifier: Apache-2.0
#include "worker/aten/conversion.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/ScalarType.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::worker {
namespace {

// In the order of kernel::DataType.
constexpr std::array<c10::ScalarType, 10> kTypes = {
    c10::kDouble, c10::kFloat, c10::kHalf, c10::kBFloat16, c10::kLong,
    c10::kInt,    c10::kShort, c10::kChar, c10::kByte,     c10::kBool};
constexpr std::array<std::string_view, 10> kTypeNames = {"f64", "f32", "f16", "bf16", "i64",
                                                         "i32", "i16", "i8",  "u8",   "bool"};
constexpr std::array<std::string_view, 10> kTorchNames = {
    "float64", "float32", "float16", "bfloat16", "int64",
    "int32",   "int16",   "int8",    "uint8",    "bool"};

using Value = std::optional<c10::IValue>;

// An argument of type `int` may be an element type in disguise.
std::optional<int64_t> FindScalarType(std::string_view text) {
  if (text.starts_with("torch.")) text.remove_prefix(6);
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (text == kTypeNames[i] || text == kTorchNames[i]) return static_cast<int64_t>(kTypes[i]);
  }
  return std::nullopt;
}

std::optional<at::Tensor> ToTensor(const MtmcAtenValue& value, c10::Device device) {
  if (value.kind != MTMC_ATEN_TENSOR) return std::nullopt;
  const MtmcAtenTensor& tensor = value.tensor;
  const auto rank = static_cast<size_t>(tensor.rank);
  const c10::IntArrayRef shape(tensor.shape, rank);
  const auto options =
      c10::TensorOptions().dtype(kTypes.at(static_cast<size_t>(tensor.data_type))).device(device);
  if (tensor.strides == nullptr) return at::from_blob(tensor.data, shape, options);
  return at::from_blob(tensor.data, shape, c10::IntArrayRef(tensor.strides, rank), options);
}

std::optional<double> ToReal(const MtmcAtenValue& value) {
  if (value.kind == MTMC_ATEN_REAL) return value.real;
  if (value.kind == MTMC_ATEN_INTEGER) return static_cast<double>(value.integer);
  return std::nullopt;
}

// Items of a list, or a single value where the schema says `int[2]`, which
// stands for as many equal ones.
std::vector<MtmcAtenValue> Items(const MtmcAtenValue& value, std::optional<int32_t> repeat) {
  if (value.kind == MTMC_ATEN_LIST) return {value.items, value.items + value.num_items};
  if (!repeat) return {};
  return std::vector<MtmcAtenValue>(static_cast<size_t>(*repeat), value);
}

template <typename T, typename Convert>
Value ToList(const std::vector<MtmcAtenValue>& items, Convert convert) {
  c10::List<T> list;
  for (const MtmcAtenValue& item : items) {
    auto element = convert(item);
    if (!element) return std::nullopt;
    list.push_back(T(*element));
  }
  return c10::IValue(list);
}

Value ConvertList(const MtmcAtenValue& value, const c10::Type& element,
                  std::optional<int32_t> repeat, c10::Device device) {
  if (value.kind != MTMC_ATEN_LIST && !repeat) return std::nullopt;
  const std::vector<MtmcAtenValue> items = Items(value, repeat);
  const auto to_tensor = [device](const MtmcAtenValue& item) { return ToTensor(item, device); };
  switch (element.kind()) {
    case c10::TypeKind::TensorType:
      return ToList<at::Tensor>(items, to_tensor);
    case c10::TypeKind::OptionalType: {
      c10::List<std::optional<at::Tensor>> list;
      for (const MtmcAtenValue& item : items) {
        auto tensor = ToTensor(item, device);
        if (!tensor && item.kind != MTMC_ATEN_NONE) return std::nullopt;
        list.push_back(tensor);
      }
      return c10::IValue(list);
    }
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return ToList<int64_t>(items, [](const MtmcAtenValue& item) {
        return item.kind == MTMC_ATEN_INTEGER ? std::optional(item.integer) : std::nullopt;
      });
    case c10::TypeKind::FloatType:
      return ToList<double>(items, ToReal);
    case c10::TypeKind::BoolType:
      return ToList<bool>(items, [](const MtmcAtenValue& item) {
        return item.kind == MTMC_ATEN_BOOLEAN ? std::optional(item.integer != 0) : std::nullopt;
      });
    default:
      return std::nullopt;
  }
}

Value Convert(const MtmcAtenValue& value, const c10::Type& type, std::optional<int32_t> repeat,
              c10::Device device) {
  switch (type.kind()) {
    case c10::TypeKind::OptionalType:
      if (value.kind == MTMC_ATEN_NONE) return c10::IValue();
      return Convert(value, *type.castRaw<c10::OptionalType>()->getElementType(), repeat, device);
    case c10::TypeKind::TensorType: {
      auto tensor = ToTensor(value, device);
      return tensor ? Value(*std::move(tensor)) : std::nullopt;
    }
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      if (value.kind == MTMC_ATEN_INTEGER) return c10::IValue(value.integer);
      if (value.kind == MTMC_ATEN_TEXT) {
        if (auto scalar_type = FindScalarType(value.text)) return c10::IValue(*scalar_type);
      }
      return std::nullopt;
    case c10::TypeKind::FloatType: {
      auto real = ToReal(value);
      return real ? Value(*real) : std::nullopt;
    }
    case c10::TypeKind::NumberType:
      if (value.kind == MTMC_ATEN_INTEGER) return c10::IValue(value.integer);
      if (value.kind == MTMC_ATEN_REAL) return c10::IValue(value.real);
      if (value.kind == MTMC_ATEN_BOOLEAN) return c10::IValue(value.integer != 0);
      return std::nullopt;
    case c10::TypeKind::BoolType:
      return value.kind == MTMC_ATEN_BOOLEAN ? Value(value.integer != 0) : std::nullopt;
    case c10::TypeKind::StringType:
      return value.kind == MTMC_ATEN_TEXT ? Value(std::string(value.text)) : std::nullopt;
    case c10::TypeKind::ListType:
      return ConvertList(value, *type.castRaw<c10::ListType>()->getElementType(), repeat, device);
    default:
      // Generators, devices and layouts are never a program's to choose.
      return std::nullopt;
  }
}

bool IsDevice(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::DeviceObjType) return true;
  return type.kind() == c10::TypeKind::OptionalType &&
         IsDevice(*type.castRaw<c10::OptionalType>()->getElementType());
}

// The value given for schema argument `index`; null when there is none. A call that
// names its overload may give all arguments by position, as a traced graph does.
const MtmcAtenValue* FindGiven(const c10::Argument& argument, size_t index,
                               const MtmcAtenCall& call) {
  const bool has_position = !argument.kwarg_only() || call.overload[0] != '\0';
  size_t position = 0;
  for (size_t i = 0; i < call.num_arguments; ++i) {
    const MtmcAtenValue& value = call.arguments[i];
    if (value.keyword) {
      if (argument.name() == value.keyword) return &value;
    } else if (position++ == index && has_position) {
      return &value;
    }
  }
  return nullptr;
}

bool IsSeed(const MtmcAtenValue& value) {
  return value.keyword && std::string_view(value.keyword) == "seed" &&
         value.kind == MTMC_ATEN_INTEGER;
}

}  // namespace

std::optional<uint64_t> FindSeed(const MtmcAtenCall& call) {
  for (size_t i = 0; i < call.num_arguments; ++i) {
    if (IsSeed(call.arguments[i])) return static_cast<uint64_t>(call.arguments[i].integer);
  }
  return std::nullopt;
}

std::optional<torch::jit::Stack> Match(const c10::FunctionSchema& schema, const MtmcAtenCall& call,
                                       c10::Device device) {
  torch::jit::Stack stack;
  size_t used = FindSeed(call) ? 1 : 0;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    // Out variants would write where the plan does not say.
    if (argument.is_out()) return std::nullopt;
    const MtmcAtenValue* given = FindGiven(argument, i, call);
    if (given) ++used;
    // A traced graph gives all by position, a device that it does not choose too.
    const bool is_open = !given || (given->kind == MTMC_ATEN_NONE && IsDevice(*argument.type()));
    if (!is_open) {
      Value value = Convert(*given, *argument.type(), argument.N(), device);
      if (!value) return std::nullopt;
      stack.push_back(*std::move(value));
    } else if (IsDevice(*argument.type())) {
      // What creates a tensor creates it where the plan's tensors are.
      stack.emplace_back(device);
    } else if (argument.default_value()) {
      stack.push_back(*argument.default_value());
    } else {
      return std::nullopt;
    }
  }
  // A keyword that names no argument, or a position beyond the last.
  if (used != call.num_arguments) return std::nullopt;
  return stack;
}

std::optional<int32_t> FindBorderType(c10::ScalarType type) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i] == type) return static_cast<int32_t>(i);
  }
  return std::nullopt;
}

}  // namespace mtmc::worker
