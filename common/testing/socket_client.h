// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/base/unique_fd.h"

namespace mtmc::testing {

// A client of TCP on loopback that sends what it is told, however wrong; for tests of
// servers. What fails here fails the test.

base::UniqueFd Connect(int port);

void SendAll(const base::UniqueFd& socket, const std::string& text);

// Until the other side ends.
std::string ReadAll(const base::UniqueFd& socket);

// Everything that the server sends in answer to `request`.
std::string Exchange(int port, const std::string& request);

// The same for an HTTP request of that path.
std::string HttpGet(int port, const std::string& path);

}  // namespace mtmc::testing
