// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <soci/soci.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::store {

// A session of SOCI that keeps the statements it was given: to parse and plan one costs as
// much as to run it, and a coordinator runs the same thirty for ever.
//
//   const bool is_found = session.Run("SELECT body FROM jobs WHERE name = :name",
//                                     soci::use(name), soci::into(body));
//
// Throws what SOCI throws. A resource; thread-compatible. Private to this folder.
class SqlSession : public soci::session {
 public:
  // Runs `text`, which is one of few, and calls `take` for each row with the row in what the
  // `into` among `values` name; whether there was one.
  template <class... Values>
  bool ForEach(std::string_view text, const std::function<void()>& take, Values... values) {
    // Whatever throws leaves nothing behind that refers to `values`.
    std::unique_ptr<soci::statement> statement = TakeStatement(text);
    (statement->exchange(std::move(values)), ...);
    statement->define_and_bind();
    const bool is_found = statement->execute(/*withDataExchange=*/true);
    // To the end, where the database lets go of what it read.
    for (bool is_row = is_found; is_row; is_row = statement->fetch()) take();
    statement->bind_clean_up();
    prepared_.find(text)->second = std::move(statement);
    return is_found;
  }

  // The same for a statement with one row at most, which stays where `values` put it.
  template <class... Values>
  bool Run(std::string_view text, Values... values) {
    return ForEach(
        text, [] {}, std::move(values)...);
  }

  // Call before the session is closed.
  void ForgetStatements() { prepared_.clear(); }

 private:
  std::unique_ptr<soci::statement> TakeStatement(std::string_view text) {
    auto found = prepared_.find(text);
    if (found == prepared_.end()) found = prepared_.emplace(text, nullptr).first;
    if (found->second != nullptr) return std::move(found->second);
    auto statement = std::make_unique<soci::statement>(*this);
    statement->alloc();
    statement->prepare(found->first);
    return statement;
  }

  // By their text; null where one failed.
  std::map<std::string, std::unique_ptr<soci::statement>, std::less<>> prepared_;
};

}  // namespace mtmc::store
