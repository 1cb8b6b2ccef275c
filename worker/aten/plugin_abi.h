// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The border between the runner and its libtorch plug-in: C types only, so that
// neither side sees the other's C++ libraries. The runner opens libtorch with
// dlopen, then the plug-in, and calls MtmcAtenEntry. Everything is called from
// one thread.

extern "C" {

// Raised by every change of what follows.
#define MTMC_ATEN_ABI_VERSION 3

// Room for a message, its zero byte included.
#define MTMC_ATEN_MESSAGE_BYTES 4096

// A tensor in host or device memory.
struct MtmcAtenTensor {
  // Of its first element.
  void* data;
  // Position in kernel::DataType.
  int32_t data_type;
  int32_t rank;
  const int64_t* shape;
  // In elements; null for a dense row-major one, as all results are.
  const int64_t* strides;
};

enum MtmcAtenKind : int32_t {
  MTMC_ATEN_NONE,
  MTMC_ATEN_TENSOR,
  MTMC_ATEN_INTEGER,
  MTMC_ATEN_REAL,
  MTMC_ATEN_BOOLEAN,
  MTMC_ATEN_TEXT,
  MTMC_ATEN_LIST,
};

// One argument; the member that `kind` names is set.
struct MtmcAtenValue {
  MtmcAtenKind kind;
  // Null for a positional argument.
  const char* keyword;
  MtmcAtenTensor tensor;
  // Also of a boolean, 0 or 1.
  int64_t integer;
  double real;
  const char* text;
  const MtmcAtenValue* items;
  size_t num_items;
};

enum MtmcAtenPrecision : int32_t {
  MTMC_ATEN_PRECISION_DEFAULT,
  MTMC_ATEN_PRECISION_TF32,
  MTMC_ATEN_PRECISION_IEEE,
};

struct MtmcAtenCall {
  // Such as `aten::linear`.
  const char* op;
  // Empty lets the plug-in choose by the arguments; `default` is the unnamed one.
  const char* overload;
  const MtmcAtenValue* arguments;
  size_t num_arguments;
  MtmcAtenPrecision precision;
  // Whether results [N, C, ...] are given as [N, ..., C].
  bool is_channels_last;
};

// `storage` is null for a result that is no tensor; otherwise release it. The
// tensor's pointers live as long.
struct MtmcAtenResult {
  void* storage;
  MtmcAtenTensor tensor;
};

struct MtmcAtenOptions {
  // Negative for the processor.
  int32_t cuda_device;
  // CUstream that all calls run on.
  void* cuda_stream;
};

// Functions that can fail return false and write a message of at most
// MTMC_ATEN_MESSAGE_BYTES into `message`.
struct MtmcAtenFunctions {
  int32_t abi_version;
  // Such as `2.11.0`.
  const char* torch_version;
  bool (*initialize)(const MtmcAtenOptions* options, char* message);
  // Writes at most `capacity` results and their number.
  bool (*call)(const MtmcAtenCall* call, MtmcAtenResult* results, size_t capacity, size_t* count,
               char* message);
  void (*release)(void* storage);
  // Gives cached device memory back.
  void (*trim)();
  // CUDA only: everything enqueued between begin and end becomes a graph, which
  // end returns; after a failure there is none. Null on the processor.
  bool (*begin_capture)(char* message);
  bool (*end_capture)(void** graph, char* message);
  bool (*replay)(void* graph, char* message);
  void (*release_graph)(void* graph);
};

using MtmcAtenEntryFunction = const MtmcAtenFunctions*();

}  // extern "C"

// Name of the one exported function.
inline constexpr char kMtmcAtenEntry[] = "MtmcAtenEntry";
