// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::client {

// Headers by the name that a source includes them under.
using Headers = std::map<std::string, std::string>;

// The headers of `folders` that a CUDA source needs, those that they include in turn,
// and those that the toolkit's own headers include. The toolkit's, which every host with
// PyTorch has, lie in none of the folders and are left out. A source that uses what nvcc
// makes known unasked (`INFINITY`) needs mtmc_prelude.h. Conditions are not evaluated, so
// that some of what is found may not be read.
Headers FindHeaders(std::string_view source, const std::vector<std::filesystem::path>& folders);

// The headers as a JSON object, compressed by zlib and in base64; empty for none.
std::string PackHeaders(const Headers& headers);

}  // namespace mtmc::client
