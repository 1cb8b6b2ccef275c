// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace mtmc::store {

// The folder of one coordinator, locked for as long as this object lives. The
// kernel drops the lock with the process, however it ends. A resource.
class DataDirectory {
 public:
  // Makes the folder if needed and locks it. FAILED_PRECONDITION with reason
  // STORE_LOCKED when another coordinator has it; the message names its process.
  static absl::StatusOr<std::unique_ptr<DataDirectory>> Open(const std::string& path);

  ~DataDirectory();
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

  std::string database_path() const { return path_ + "/mtmc.db"; }

  std::string artifacts_path() const { return path_ + "/artifacts"; }

 private:
  DataDirectory(std::string path, int lock_fd);

  const std::string path_;
  const int lock_fd_;
};

}  // namespace mtmc::store
