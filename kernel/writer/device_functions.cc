// SPDX-License-Identifier: Apache-2.0
#include "kernel/writer/device_functions.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "kernel/graph/text.h"
#include "kernel/writer/dialect_text.h"

namespace mtmc::kernel {
namespace {

struct DeviceFunction {
  std::string_view name;
  // `INLINE` stands for the dialect's qualifier. Empty where the dialect has no need of it.
  std::string_view cuda;
  std::string_view opencl;
};

// The same in both dialects.
constexpr std::string_view kRemainderF64 =
    R"(// The sign of b, and exact.
INLINE double remainder_f64(double a, double b) {
  const double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
)";

constexpr std::string_view kFloorDivideF64 =
    R"(// floor(a / b) before a / b is rounded.
INLINE double floor_divide_f64(double a, double b) {
  const double r = fmod(a, b);
  const double q = rint((a - r) / b);
  return b == 0 ? a / b : r != 0 && (r < 0) != (b < 0) ? q - 1.0 : q;
}
)";

// The erf and tanh polynomials are weighted least-squares fits that were iterated to an even
// error over [0, 1], [1, 4] and [0, 0.75].
constexpr DeviceFunction kFunctions[] = {
    {"fast_erf", "", R"(// erf without branches; relative error below 2e-7.
INLINE float fast_erf(float x) {
  const float a = fabs(x) > 4.0f ? 4.0f : fabs(x);
  const float s = a * a;
  float near_zero = 7.889119e-05f;
  near_zero = near_zero * s - 0.0008020841f;
  near_zero = near_zero * s + 0.005189535f;
  near_zero = near_zero * s - 0.026854444f;
  near_zero = near_zero * s + 0.112836f;
  near_zero = near_zero * s - 0.37612626f;
  near_zero = near_zero * s + 1.1283791f;
  near_zero *= a;
  float q = -0.00013316213f;
  q = q * a + 0.002401819f;
  q = q * a - 0.019578718f;
  q = q * a + 0.098264046f;
  q = q * a + 0.64382654f;
  q = q * a + 1.1236223f;
  q = q * a + 0.0012026806f;
  const float tail = 1.0f - exp(-q);
  return copysign(a < 1.0f ? near_zero : tail, x);
}
)"},
    {"fast_tanh", "", R"(// tanh without branches; relative error below 2e-7.
INLINE float fast_tanh(float x) {
  const float a = fabs(x) > 10.0f ? 10.0f : fabs(x);
  const float s = a * a;
  float near_zero = 0.0017277047f;
  near_zero = near_zero * s - 0.0076394537f;
  near_zero = near_zero * s + 0.021438751f;
  near_zero = near_zero * s - 0.053887933f;
  near_zero = near_zero * s + 0.1333261f;
  near_zero = near_zero * s - 0.33333308f;
  near_zero = near_zero * s + 1.0f;
  near_zero *= a;
  const float tail = 1.0f - 2.0f / (exp(2.0f * a) + 1.0f);
  return copysign(a < 0.75f ? near_zero : tail, x);
}
)"},
    {"fast_log1p", "", R"(// log(1 + x); the factor repairs the rounding of 1 + x.
INLINE float fast_log1p(float x) {
  const float u = 1.0f + x;
  return u == 1.0f || u == INFINITY ? x : log(u) * (x / (u - 1.0f));
}
)"},
    {"fast_expm1", "", R"(// exp(x) - 1; Taylor's series where the subtraction would cancel.
INLINE float fast_expm1(float x) {
  float near_zero = 1.0f / 5040.0f;
  near_zero = near_zero * x + 1.0f / 720.0f;
  near_zero = near_zero * x + 1.0f / 120.0f;
  near_zero = near_zero * x + 1.0f / 24.0f;
  near_zero = near_zero * x + 1.0f / 6.0f;
  near_zero = near_zero * x + 0.5f;
  near_zero = near_zero * x + 1.0f;
  return fabs(x) < 0.4f ? near_zero * x : exp(x) - 1.0f;
}
)"},
    {"tf32_head", R"(// The nearest TF32 number; x itself where there is none.
INLINE float tf32_head(float x) {
  const unsigned int bits = __float_as_uint(x);
  const float head = __uint_as_float((bits + 0xfffu + (bits >> 13 & 1u)) & 0xffffe000u);
  return isfinite(x) && isfinite(head) ? head : x;
}
)",
     R"(// The nearest TF32 number; x itself where there is none.
INLINE float tf32_head(float x) {
  const uint bits = as_uint(x);
  const float head = as_float((bits + 0xfffu + (bits >> 13 & 1u)) & 0xffffe000u);
  return isfinite(x) && isfinite(head) ? head : x;
}
)"},
    {"tf32_tail", R"(// What a head leaves of x, exactly.
INLINE float tf32_tail(float x, float head) { return isfinite(x) ? x - head : 0.0f; }
)",
     R"(// What a head leaves of x, exactly.
INLINE float tf32_tail(float x, float head) { return isfinite(x) ? x - head : 0.0f; }
)"},
    {"sigmoid", "INLINE float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }\n",
     "INLINE float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }\n"},
    {"sigmoid_f64", "INLINE double sigmoid_f64(double x) { return 1.0 / (1.0 + exp(-x)); }\n",
     "INLINE double sigmoid_f64(double x) { return 1.0 / (1.0 + exp(-x)); }\n"},
    {"maximum_f32",
     "INLINE float maximum_f32(float a, float b) { return a > b || a != a ? a : b; }\n",
     "INLINE float maximum_f32(float a, float b) { return a > b || a != a ? a : b; }\n"},
    {"minimum_f32",
     "INLINE float minimum_f32(float a, float b) { return a < b || a != a ? a : b; }\n",
     "INLINE float minimum_f32(float a, float b) { return a < b || a != a ? a : b; }\n"},
    {"maximum_f64",
     "INLINE double maximum_f64(double a, double b) { return a > b || a != a ? a : b; }\n",
     "INLINE double maximum_f64(double a, double b) { return a > b || a != a ? a : b; }\n"},
    {"minimum_f64",
     "INLINE double minimum_f64(double a, double b) { return a < b || a != a ? a : b; }\n",
     "INLINE double minimum_f64(double a, double b) { return a < b || a != a ? a : b; }\n"},
    {"sum_f32x8", "", R"(INLINE float sum_f32x8(float8 x) {
  const float4 half_sum = x.lo + x.hi;
  const float2 quarter = half_sum.lo + half_sum.hi;
  return quarter.x + quarter.y;
}
)"},
    // The processor traps at the quotient that does not fit.
    {"floor_div", R"(INLINE long long floor_div(long long a, long long b) {
  if (b == -1) return (long long)(0ull - (unsigned long long)a);
  const long long q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
)",
     R"(INLINE long floor_div(long a, long b) {
  if (b == -1) return (long)(0ul - (ulong)a);
  const long q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
)"},
    {"floor_mod", R"(INLINE long long floor_mod(long long a, long long b) {
  const long long r = b == -1 ? 0 : a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
)",
     R"(INLINE long floor_mod(long a, long b) {
  const long r = b == -1 ? 0 : a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
)"},
    {"remainder_f32", R"(// The sign of b, and exact.
INLINE float remainder_f32(float a, float b) {
  const float r = fmodf(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
)",
     R"(// The sign of b, and exact.
INLINE float remainder_f32(float a, float b) {
  const float r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
)"},
    {"remainder_f64", kRemainderF64, kRemainderF64},
    {"floor_divide_f32", R"(// floor(a / b) before a / b is rounded.
INLINE float floor_divide_f32(float a, float b) {
  const float r = fmodf(a, b);
  const float q = rintf((a - r) / b);
  return b == 0 ? a / b : r != 0 && (r < 0) != (b < 0) ? q - 1.0f : q;
}
)",
     R"(// floor(a / b) before a / b is rounded.
INLINE float floor_divide_f32(float a, float b) {
  const float r = fmod(a, b);
  const float q = rint((a - r) / b);
  return b == 0 ? a / b : r != 0 && (r < 0) != (b < 0) ? q - 1.0f : q;
}
)"},
    {"floor_divide_f64", kFloorDivideF64, kFloorDivideF64},
    {"bf16_to_float", "",
     "INLINE float bf16_to_float(ushort bits) { return as_float((uint)bits << 16); }\n"},
    {"float_to_bf16", "", R"(// Rounds to nearest even.
INLINE ushort float_to_bf16(float x) {
  const uint bits = as_uint(x);
  return x != x ? (ushort)0x7fc0 : (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
)"},
    {"round_to_f16",
     "INLINE float round_to_f16(float x) { return __half2float(__float2half_rn(x)); }\n",
     R"(INLINE float round_to_f16(float x) {
  ushort bits;
  vstore_half(x, 0, (half*)&bits);
  return vload_half(0, (const half*)&bits);
}
)"},
    {"round_to_bf16",
     "INLINE float round_to_bf16(float x) { return __bfloat162float(__float2bfloat16_rn(x)); }\n",
     "INLINE float round_to_bf16(float x) { return bf16_to_float(float_to_bf16(x)); }\n"},
};

// `load_f32x4`, taken apart.
struct VectorFunction {
  bool is_load = true;
  DataType type = DataType::kF32;
  int lanes = 1;
};

std::optional<VectorFunction> FindVectorFunction(std::string_view name) {
  VectorFunction function;
  if (name.substr(0, 5) == "load_") {
    name.remove_prefix(5);
  } else if (name.substr(0, 6) == "store_") {
    name.remove_prefix(6);
    function.is_load = false;
  } else {
    return std::nullopt;
  }
  const size_t x = name.rfind('x');
  if (x == std::string_view::npos) return std::nullopt;
  const std::optional<DataType> type = FindDataType(name.substr(0, x));
  const std::optional<int64_t> lane_count = FindInteger(name.substr(x + 1));
  if (!type || !lane_count || *lane_count > 16) return std::nullopt;
  function.lanes = static_cast<int>(*lane_count);
  function.type = *type;
  const int lanes = function.lanes;
  if (lanes != 2 && lanes != 4 && lanes != 8 && lanes != 16) return std::nullopt;
  return function;
}

// `packs` are the structs printed so far.
std::string CudaVectorFunction(const std::string& name, const VectorFunction& function,
                               std::set<std::string>& packs) {
  const DialectText text(Dialect::kCuda);
  const std::string element = text.StorageType(function.type);
  const std::string compute = text.ComputeType(function.type);
  const int64_t bytes = function.lanes * SizeOf(function.type);
  const std::string pack = Concat("Pack_", ToText(function.type), "x", function.lanes);
  std::string source;
  if (packs.insert(pack).second) {
    source = Concat("struct __align__(", std::min<int64_t>(bytes, 16), ") ", pack, " {\n  ",
                    element, " lane[", function.lanes, "];\n};\n\n");
  }
  const std::string loop =
      Concat("#pragma unroll\n  for (int i = 0; i < ", function.lanes, "; ++i) ");
  if (function.is_load) {
    source +=
        Concat("INLINE void ", name, "(", compute, "* to, const ", element, "* from) {\n  const ",
               pack, " pack = *reinterpret_cast<const ", pack, "*>(from);\n", loop,
               "to[i] = ", text.Load("pack.lane", function.type, "i"), ";\n}\n");
  } else {
    source += Concat("INLINE void ", name, "(", element, "* to, const ", compute, "* from) {\n  ",
                     pack, " pack;\n", loop, text.Store("pack.lane", function.type, "i", "from[i]"),
                     "\n  *reinterpret_cast<", pack, "*>(to) = pack;\n}\n");
  }
  return source;
}

std::string OpenClVectorFunction(const std::string& name, const VectorFunction& function) {
  const DialectText text(Dialect::kOpenCl);
  const std::string element = text.StorageType(function.type);
  const std::string compute = text.ComputeType(function.type);
  const int lanes = function.lanes;
  const bool is_plain = element == compute;
  std::string body;
  if (is_plain) {
    body = Concat("vstore", lanes, "(vload", lanes, "(0, from), 0, to);");
  } else if (function.type == DataType::kF16) {
    body = function.is_load ? Concat("vstore", lanes, "(vload_half", lanes, "(0, from), 0, to);")
                            : Concat("vstore_half", lanes, "(vload", lanes, "(0, from), 0, to);");
  } else {
    const std::string statement =
        function.is_load ? Concat("to[i] = ", text.Load("from", function.type, "i"), ";")
                         : text.Store("to", function.type, "i", "from[i]");
    body = Concat("for (int i = 0; i < ", lanes, "; ++i) ", statement);
  }
  const std::string to =
      function.is_load ? Concat(compute, "* to") : Concat("__global ", element, "* to");
  const std::string from = function.is_load ? Concat("__global const ", element, "* from")
                                            : Concat("const ", compute, "* from");
  return Concat("INLINE void ", name, "(", to, ", ", from, ") {\n  ", body, "\n}\n");
}

bool IsDeviceFunction(std::string_view name) {
  return FindVectorFunction(name).has_value() ||
         std::any_of(std::begin(kFunctions), std::end(kFunctions),
                     [name](const DeviceFunction& function) { return function.name == name; });
}

}  // namespace

std::set<std::string> DeviceFunctionsIn(std::string_view code) {
  std::set<std::string> names;
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (size_t begin = 0; begin < code.size();) {
    if (!is_word(code[begin])) {
      ++begin;
      continue;
    }
    size_t end = begin;
    while (end < code.size() && is_word(code[end])) ++end;
    const std::string_view word = code.substr(begin, end - begin);
    if (end < code.size() && code[end] == '(' && IsDeviceFunction(word)) names.emplace(word);
    begin = end;
  }
  return names;
}

std::string DeviceFunctions(const std::set<std::string>& names, Dialect dialect) {
  std::set<std::string> needed = names;
  if (dialect == Dialect::kOpenCl) {
    // Those that another one calls.
    for (const std::string& name : names) {
      if (name == "round_to_bf16" || name.find("_bf16x") != std::string::npos) {
        needed.insert({"bf16_to_float", "float_to_bf16"});
      }
    }
  }
  const bool is_cuda = dialect == Dialect::kCuda;
  std::string source;
  std::set<std::string> packs;
  for (const DeviceFunction& function : kFunctions) {
    if (!needed.contains(std::string(function.name))) continue;
    const std::string_view text = is_cuda ? function.cuda : function.opencl;
    if (!text.empty()) source += Concat(text, "\n");
  }
  for (const std::string& name : needed) {
    const std::optional<VectorFunction> function = FindVectorFunction(name);
    if (!function) continue;
    Append(source,
           is_cuda ? CudaVectorFunction(name, *function, packs)
                   : OpenClVectorFunction(name, *function),
           "\n");
  }
  constexpr std::string_view kMark = "INLINE";
  for (size_t at = source.find(kMark); at != std::string::npos; at = source.find(kMark)) {
    source.replace(at, kMark.size(), DialectText(dialect).FunctionQualifier());
  }
  return source;
}

}  // namespace mtmc::kernel
