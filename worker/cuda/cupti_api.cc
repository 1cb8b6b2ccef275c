// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cupti_api.h"

#include <dlfcn.h>

#include <filesystem>

#include "absl/strings/str_cat.h"

namespace mtmc::worker {
namespace {

absl::StatusOr<CuptiApi> Load(const std::string& library) {
  if (library.empty()) return absl::UnavailableError("there is no CUPTI");
  // CUPTI opens these by name when counters are first asked for, and finds them
  // only if they are loaded already or on the loader's path. Their absence shows
  // there.
  const std::filesystem::path folder = std::filesystem::path(library).parent_path();
  for (const char* name : {"libnvperf_host.so", "libnvperf_target.so"}) {
    dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return absl::UnavailableError(absl::StrCat("CUPTI cannot be opened: ", dlerror()));
  CuptiApi api;
#define MTMC_LOAD(name)                                                  \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(handle, #name)); \
  if (!api.name) return absl::UnavailableError(library + " has no function " #name);
  MTMC_CUPTI_FUNCTIONS(MTMC_LOAD)
#undef MTMC_LOAD
  return api;
}

bool IsForbidden(CUptiResult result) {
  return result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ||
         result == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES;
}

}  // namespace

absl::StatusOr<const CuptiApi*> OpenCupti(const std::string& library) {
  // Never closed: CUPTI runs threads of its own. A process has one library.
  static const absl::StatusOr<CuptiApi>& api = *new absl::StatusOr<CuptiApi>(Load(library));
  if (!api.ok()) return api.status();
  return &*api;
}

absl::Status CuptiStatus(const CuptiApi& api, CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  api.cuptiGetResultString(result, &name);
  const std::string message =
      absl::StrCat(call, " failed: ", name ? name : "unknown error", " (", int{result}, ")");
  return IsForbidden(result) ? absl::PermissionDeniedError(message)
                             : absl::UnavailableError(message);
}

}  // namespace mtmc::worker
