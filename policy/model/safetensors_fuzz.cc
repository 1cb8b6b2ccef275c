// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "policy/model/config.h"
#include "policy/model/safetensors.h"

// Any bytes as the header of a weight file of 4 KiB, and as a configuration.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kDataBytes = 4096;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto entries = mtmc::policy::ParseSafetensorsHeader(text, kDataBytes);
  if (entries.ok()) {
    for (const auto& [name, entry] : *entries) {
      if (entry.begin > entry.end || entry.end > kDataBytes) std::abort();
    }
  }
  const auto config = mtmc::policy::ParseModelConfig(text);
  if (config.ok() && config->head_size <= 4096) {
    mtmc::policy::RopeFrequencies(config->rope, config->head_size);
  }
  return 0;
}
