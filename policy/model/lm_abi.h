// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The C boundary between mtmc-policyd and the plug-in with libtorch. Only plain
// types cross it, because each side has its own copy of Abseil. Strings are
// borrowed for the duration of a call; nothing is allocated by one side and
// freed by the other. Thread-compatible.
extern "C" {

// Raised with every change below.
constexpr uint32_t kMtmcLmAbiVersion = 1;
// The one symbol of the plug-in, of type `const MtmcLmApi* ()`.
#define MTMC_LM_ENTRY "mtmc_lm_api"

struct MtmcLmText {
  const char* data;
  size_t size;
};

// Receives a status; `code` is an absl::StatusCode, 0 is OK.
typedef void (*MtmcLmReport)(void* context, int code, MtmcLmText message);

struct MtmcLmModelOptions {
  MtmcLmText folder;
  MtmcLmText device;
  int keeps_bfloat16;
};

struct MtmcLmRequest {
  MtmcLmText prompt;
  const MtmcLmText* actions;
  size_t action_count;
};

// Called once per request. On success `token_counts` has one number per action
// and `log_probabilities` all their tokens, one action after the other.
typedef void (*MtmcLmEmit)(void* context, size_t request, int code, MtmcLmText message,
                           const size_t* token_counts, const double* log_probabilities);

struct MtmcLmApi {
  uint32_t version;
  // A model, or null after `report` was called with the reason.
  void* (*create)(const MtmcLmModelOptions* options, MtmcLmReport report, void* context);
  void (*destroy)(void* model);
  // Valid as long as the model.
  MtmcLmText (*digest)(const void* model);
  MtmcLmText (*description)(const void* model);
  void (*score)(void* model, const MtmcLmRequest* requests, size_t count, MtmcLmEmit emit,
                void* context);
};

}  // extern "C"
