// SPDX-License-Identifier: Apache-2.0
#include "server/s3/curl_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "common/rpc/error.h"

namespace mtmc::s3 {
namespace {

// CURLOPT_PROTOCOLS_STR came last of what is used here.
constexpr unsigned kMinVersion = 0x075500;

absl::Status Missing(const char* what) {
  return rpc::MakeError(
      absl::StatusCode::kFailedPrecondition, "LIBCURL_MISSING",
      absl::StrCat("artifacts in S3 need libcurl.so.4 of version 7.85 or later, which ", what,
                   "; install libcurl4"));
}

template <class Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

absl::StatusOr<const CurlLibrary*> Load() {
  void* const library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Missing("cannot be opened");
  static CurlLibrary curl;
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_version_info) version_info = nullptr;
  const bool is_whole = Find(library, "curl_global_init", global_init) &&
                        Find(library, "curl_version_info", version_info) &&
                        Find(library, "curl_easy_init", curl.easy_init) &&
                        Find(library, "curl_easy_reset", curl.easy_reset) &&
                        Find(library, "curl_easy_setopt", curl.easy_setopt) &&
                        Find(library, "curl_easy_perform", curl.easy_perform) &&
                        Find(library, "curl_easy_getinfo", curl.easy_getinfo) &&
                        Find(library, "curl_easy_cleanup", curl.easy_cleanup) &&
                        Find(library, "curl_easy_strerror", curl.easy_strerror) &&
                        Find(library, "curl_slist_append", curl.slist_append) &&
                        Find(library, "curl_slist_free_all", curl.slist_free_all);
  if (!is_whole) return Missing("is not whole");
  if (version_info(CURLVERSION_NOW)->version_num < kMinVersion) return Missing("is too old");
  if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return Missing("cannot be started");
  return &curl;
}

}  // namespace

absl::StatusOr<const CurlLibrary*> OpenCurl() {
  static const auto* const kLoaded = new absl::StatusOr<const CurlLibrary*>(Load());
  return *kLoaded;
}

}  // namespace mtmc::s3
