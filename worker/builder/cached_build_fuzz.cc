// SPDX-License-Identifier: Apache-2.0

// Any bytes may lie in the cache's folder; what is taken for a build is one that
// is written as the same bytes again, or at least as the same message.

#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "common/base/digest.h"
#include "worker/builder/cached_build.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mtmc::worker;
  static auto* const logged = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(logged);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (ParseCacheFile(bytes).ok()) {
    const auto again = ParseCacheFile(ToCacheFile(*ParseCacheFile(bytes)));
    if (!again.ok()) std::abort();
  }
  // Random bytes do not have their own digest: the message behind it is reached
  // by giving it one.
  const std::string sealed =
      "mtmc build 1\n" + mtmc::base::Sha256(bytes).sha256_hex + std::string(bytes);
  const auto built = ParseCacheFile(sealed);
  if (built.ok() && built->binary().empty()) std::abort();
  return 0;
}
