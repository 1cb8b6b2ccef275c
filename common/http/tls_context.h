// SPDX-License-Identifier: Apache-2.0
//
// The certificates of the HTTP server. Private to this folder.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/http/http_server.h"

namespace mtmc::http {

// What connections are encrypted with, read anew within a second of a change of its files;
// connections that are open keep what they began with. Thread-compatible.
class TlsContext {
 public:
  using Context = std::shared_ptr<boost::asio::ssl::context>;

  // INVALID_ARGUMENT with reason TLS_FILE_INVALID.
  static absl::StatusOr<std::unique_ptr<TlsContext>> Create(TlsFiles files);

  // Files that are at fault, as in the middle of a change, are left until they are right.
  Context Current();

 private:
  using Times = std::vector<std::filesystem::file_time_type>;

  explicit TlsContext(TlsFiles files) : files_(std::move(files)) {}

  absl::StatusOr<Context> Read() const;
  Times WriteTimes() const;

  const TlsFiles files_;
  Context context_;
  Times times_;
  absl::Time next_look_ = absl::InfinitePast();
};

}  // namespace mtmc::http
