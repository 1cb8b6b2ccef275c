// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <soci/soci.h>

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/store/sql_pipeline.h"

namespace mtmc::store {

// A session of SOCI that keeps the statements it was given: to parse and plan one costs as
// much as to run it, and a coordinator runs the same thirty for ever.
//
//   const bool is_found = session.Run("SELECT body FROM jobs WHERE name = :name",
//                                     soci::use(name), soci::into(body));
//   session.Send("DELETE FROM events WHERE job = :job", {name});
//
// What is sent is done in order, before what is run after it; whether it could be done is known
// after Collect(), which Run calls, and so does a SqlTransaction before it ends. Of SOCI's own
// functions none may be called before that.
//
// Throws what SOCI throws. A resource; thread-compatible. Private to this folder.
class SqlSession : public soci::session {
 public:
  // Runs `text`, which is one of few, and calls `take` for each row with the row in what the
  // `into` among `values` name; whether there was one.
  template <class... Values>
  bool ForEach(std::string_view text, const std::function<void()>& take, Values... values) {
    Collect();
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

  // Has `text`, which is one of few and whose rows nobody wants, done with `values` for its
  // parameters, in order. Through a pipeline it does not wait for that, and an error is
  // Collect()'s.
  void Send(std::string_view text, std::initializer_list<SqlValue> values = {});

  // Waits until all that was sent is done, and throws the first error.
  void Collect() {
    if (pipeline_ != nullptr) pipeline_->Collect();
  }

  // Of a session that was opened. Without one, what is sent is done at once.
  void SendThrough(std::unique_ptr<SqlPipeline> pipeline) { pipeline_ = std::move(pipeline); }

  // Call before the session is closed.
  void Forget() {
    pipeline_ = nullptr;
    prepared_.clear();
  }

 private:
  std::unique_ptr<soci::statement> TakeStatement(std::string_view text);

  // By their text; null where one failed.
  std::map<std::string, std::unique_ptr<soci::statement>, std::less<>> prepared_;
  // Null where the database has none.
  std::unique_ptr<SqlPipeline> pipeline_;
};

// A transaction of a session, from its construction to Commit(); undone if it is destroyed
// before. A resource; thread-compatible. Private to this folder.
class SqlTransaction {
 public:
  explicit SqlTransaction(SqlSession& session) : session_(session) { session_.begin(); }

  ~SqlTransaction();
  SqlTransaction(const SqlTransaction&) = delete;
  SqlTransaction& operator=(const SqlTransaction&) = delete;

  // REQUIRES: nothing was sent since the last Collect(), whose errors are not those of a commit.
  void Commit();

 private:
  SqlSession& session_;
  bool is_over_ = false;
};

}  // namespace mtmc::store
