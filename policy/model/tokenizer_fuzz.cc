// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "policy/model/tokenizer_json.h"

// Any bytes as a tokenizer file; one that is read must be able to encode.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = mtmc::policy::ReadTokenizer(text);
  if (tokenizer.ok())
    (*tokenizer)->Encode("fuse gelu into gemm_0 (lines 21-24)\n\t é").status().IgnoreError();
  return 0;
}
