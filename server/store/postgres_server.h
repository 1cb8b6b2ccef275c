// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/subprocess.h"
#include "common/base/temp_dir.h"

namespace mtmc::store {

// A PostgreSQL server of a test's own, in a temporary folder, reached by a socket there.
// It refuses to run as root and then runs as `nobody`. Move-only: it owns the process.
class PostgresServer {
 public:
  // Makes an empty cluster and starts it. NOT_FOUND where PostgreSQL is not installed,
  // with what to install.
  static absl::StatusOr<PostgresServer> Start();

  // The address of a new database, for PostgresJobStore::Open.
  absl::StatusOr<std::string> CreateDatabase();

  // Ends the server as a crash of its host would.
  void Kill();

  // Starts it again after Kill, with the same addresses.
  absl::Status StartAgain();

 private:
  PostgresServer(std::string programs, base::TempDir folder);

  absl::StatusOr<base::Subprocess> Launch(const std::string& program,
                                          const std::vector<std::string>& arguments) const;
  absl::Status Run(const std::string& program, const std::vector<std::string>& arguments) const;

  // Folder of postgres, initdb and the like.
  std::string programs_;
  base::TempDir folder_;
  std::optional<base::Subprocess> server_;
  int num_databases_ = 0;
};

}  // namespace mtmc::store
