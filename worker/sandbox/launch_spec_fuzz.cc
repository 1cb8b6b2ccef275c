// SPDX-License-Identifier: Apache-2.0

// Any text may be given to mtmc-sandbox; what it takes for a specification prints
// to the text of an equal one.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "worker/sandbox/launch_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mtmc::worker;
  const auto spec = ParseLaunchSpec({reinterpret_cast<const char*>(data), size});
  if (!spec.ok()) return 0;
  const std::string printed = ToJson(*spec);
  const auto again = ParseLaunchSpec(printed);
  if (!again.ok() || ToJson(*again) != printed) std::abort();
  return 0;
}
