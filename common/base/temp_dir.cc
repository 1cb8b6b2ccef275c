// SPDX-License-Identifier: Apache-2.0
#include "common/base/temp_dir.h"

#include <stdlib.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "common/base/annotate.h"

namespace mtmc::base {

absl::StatusOr<TempDir> TempDir::Create(std::string_view prefix) {
  std::error_code error;
  const std::filesystem::path root = std::filesystem::temp_directory_path(error);
  if (error) return SystemError(error.value(), "find the folder for temporary files");
  std::string name = (root / (std::string(prefix) + ".XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) return SystemError(errno, "make folder " + name);
  return TempDir(name);
}

TempDir::TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  if (this != &other) {
    Remove();
    path_ = std::exchange(other.path_, {});
  }
  return *this;
}

TempDir::~TempDir() { Remove(); }

void TempDir::Remove() {
  // What cannot be removed stays behind in the temporary folder; there is
  // nobody to tell from a destructor.
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace mtmc::base
