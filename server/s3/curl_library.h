// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <curl/curl.h>

#include "absl/status/statusor.h"

namespace mtmc::s3 {

// The functions of libcurl that this folder calls. It is opened at run time, so that a
// coordinator with a folder of artifacts starts on a host without it. A value; private
// to this folder.
struct CurlLibrary {
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_reset) easy_reset;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_perform) easy_perform;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
};

// Thread-safe; cheap after the first call. FAILED_PRECONDITION with reason
// LIBCURL_MISSING, also for one that is too old to sign requests.
absl::StatusOr<const CurlLibrary*> OpenCurl();

}  // namespace mtmc::s3
