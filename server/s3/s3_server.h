// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/subprocess.h"
#include "common/base/temp_dir.h"
#include "server/s3/settings.h"

namespace mtmc::s3 {

// An S3 server of a test's own, versitygw over a temporary folder, on loopback, with one
// bucket. Move-only: it owns the process.
class S3Server {
 public:
  // NOT_FOUND where versitygw is not installed, with what to do.
  static absl::StatusOr<S3Server> Start();

  // Its bucket below `prefix`, and a key that it takes.
  Settings settings(const std::string& prefix = "") const;
  Environment environment() const;

  // The file of an object.
  std::filesystem::path FileOf(const std::string& key) const;

  const std::filesystem::path& folder() const { return folder_.path(); }

  // Parts of uploads that have not ended.
  int CountParts() const;

  // Ends the server as a crash would.
  void Kill();

  // Starts it again after Kill, with the same address.
  absl::Status StartAgain();

  // Lets it answer nothing until Resume().
  void Pause();
  void Resume();

 private:
  S3Server(std::string program, base::TempDir folder, int port);

  std::string program_;
  base::TempDir folder_;
  int port_;
  std::optional<base::Subprocess> server_;
};

}  // namespace mtmc::s3
