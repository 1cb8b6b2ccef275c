// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/shared_folder.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"

namespace mtmc::worker {
namespace {

std::string PathOf(const std::string& scratch) {
  std::error_code ignored;
  if (!std::filesystem::is_directory("/dev/shm", ignored)) return absl::StrCat(scratch, "/shared");
  const std::string absolute = std::filesystem::absolute(scratch).string();
  return absl::StrCat("/dev/shm/mtmc-", base::Sha256(absolute).sha256_hex.substr(0, 16));
}

}  // namespace

SharedFolder::SharedFolder(const std::string& scratch) : path_(PathOf(scratch)) { Clear(); }

SharedFolder::~SharedFolder() { Clear(); }

void SharedFolder::Clear() const {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace mtmc::worker
