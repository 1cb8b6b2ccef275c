// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/error.h"
#include "server/store/sql_session.h"

// How a message is kept in a column. Private to the statements of this folder.
namespace mtmc::store::sql {

template <class Message>
std::string Encode(const Message& message) {
  return absl::Base64Escape(message.SerializeAsString());
}

template <class Message>
absl::StatusOr<Message> Decode(const std::string& body) {
  std::string bytes;
  Message message;
  if (absl::Base64Unescape(body, &bytes) && message.ParseFromString(bytes)) return message;
  return rpc::MakeError(absl::StatusCode::kDataLoss, "STORE_CORRUPT",
                        absl::StrCat("a stored ", Message::descriptor()->name(),
                                     " cannot be read; restore the data directory"));
}

inline absl::Status NotFound(const std::string& kind, const std::string& name) {
  return rpc::MakeError(absl::StatusCode::kNotFound, absl::StrCat(kind, "_NOT_FOUND"),
                        absl::StrCat("\"", name, "\" does not exist"), {{"name", name}});
}

// The one column of the one row that `query` finds for `key`.
inline std::optional<std::string> FindBody(SqlSession& sql, const std::string& query,
                                           const std::string& key) {
  std::string body;
  if (!sql.Run(query, soci::use(key), soci::into(body))) return std::nullopt;
  return body;
}

}  // namespace mtmc::store::sql
