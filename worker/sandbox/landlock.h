// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace mtmc::worker {

// Version of the kernel's Landlock; 0 if it has none or is told to have none.
int LandlockVersion();

// From this version on signals and abstract sockets stay inside.
inline constexpr int kLandlockScopes = 6;

// What stays open; all other files, all TCP ports, and signals and abstract
// sockets outside are closed, as far as the kernel's version goes. Paths that do
// not exist are passed over.
struct LandlockRules {
  std::vector<std::string> readable;
  std::vector<std::string> writable;
  std::vector<std::string> devices;
  // Folders whose names, and all below, may be read, but not the files.
  std::vector<std::string> listable;
  // Folders whose files may be read and written, but none made or removed.
  std::vector<std::string> rewritable;
};

// Restricts this thread and all that it starts. REQUIRES: no_new_privs.
absl::Status RestrictWithLandlock(const LandlockRules& rules);

}  // namespace mtmc::worker
