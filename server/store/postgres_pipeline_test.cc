// SPDX-License-Identifier: Apache-2.0
//
// Statements that are sent to PostgreSQL before the last one was answered.
#include "server/store/postgres_pipeline.h"

#include <soci/postgresql/soci-postgresql.h>
#include <soci/soci.h>

#include <catch2/catch.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "common/testing/status_matchers.h"
#include "server/store/libpq.h"
#include "server/store/postgres_server.h"
#include "server/store/sql_session.h"

namespace mtmc::store {
namespace {

using soci::into;
using testing::IsOk;

// A server with one table of numbered notes, and a session on it with a pipeline.
struct Notes {
  absl::StatusOr<PostgresServer> server = PostgresServer::Start();
  std::string address;
  SqlSession session;

  // False where the test is skipped.
  bool Open() {
    if (absl::IsNotFound(server.status()) || !HasPostgresPipelines()) {
      std::cout << "SKIPPED: no PostgreSQL server, or no pipelines" << std::endl;
      return false;
    }
    REQUIRE_THAT(server.status(), IsOk());
    REQUIRE_THAT(OpenLibpq(), IsOk());
    address = *server->CreateDatabase();
    Connect(session);
    session.Run("CREATE TABLE notes (number BIGINT PRIMARY KEY, text TEXT)");
    return true;
  }

  void Connect(SqlSession& opened) const {
    opened.open(soci::postgresql, address);
    auto& backend = *static_cast<soci::postgresql_session_backend*>(opened.get_backend());
    opened.SendThrough(std::make_unique<PostgresPipeline>(backend));
  }

  void Send(long long number, const std::string& text = "") {
    session.Send("INSERT INTO notes (number, text) VALUES (:number, :text)", {number, text});
  }

  int Count() {
    int count = 0;
    session.Run("SELECT COUNT(*) FROM notes", into(count));
    return count;
  }
};

}  // namespace

TEST_CASE("What was sent is done before what is run after it", "[store]") {
  Notes notes;
  if (!notes.Open()) return;
  const std::string text = "a 'quoted' \xC3\xA9 text\n";

  notes.Send(1, text);
  notes.Send(2);
  notes.session.Send("UPDATE notes SET text = :text WHERE number = :number", {SqlValue(), 2});

  CHECK(notes.Count() == 2);
  std::string read;
  notes.session.Run("SELECT text FROM notes WHERE number = 1", into(read));
  CHECK(read == text);
  CHECK(notes.session.Run("SELECT text FROM notes WHERE number = 2 AND text IS NULL"));
}

TEST_CASE("Whoever collects gets the first error of what was sent, and the session goes on",
          "[store]") {
  Notes notes;
  if (!notes.Open()) return;
  notes.Send(1);
  notes.session.Collect();

  std::string state;
  {
    SqlTransaction transaction(notes.session);
    notes.Send(2);
    notes.Send(1);
    notes.Send(1);
    try {
      notes.session.Collect();
    } catch (const soci::postgresql_soci_error& error) {
      state = error.sqlstate();
    }
  }

  // A number that is taken, not a transaction that is void.
  CHECK(state == "23505");
  CHECK(notes.Count() == 1);
  {
    SqlTransaction transaction(notes.session);
    notes.Send(3);
    notes.session.Collect();
    transaction.Commit();
  }
  CHECK(notes.Count() == 2);
}

TEST_CASE("A transaction that is given up undoes what was sent and not collected", "[store]") {
  Notes notes;
  if (!notes.Open()) return;

  {
    const SqlTransaction transaction(notes.session);
    notes.Send(1);
    notes.Send(2);
  }

  CHECK(notes.Count() == 0);
}

TEST_CASE("A part of a transaction can be undone between statements that are sent", "[store]") {
  Notes notes;
  if (!notes.Open()) return;

  {
    SqlTransaction transaction(notes.session);
    notes.Send(1);
    notes.session.Send("SAVEPOINT part");
    notes.Send(2);
    notes.session.Send("ROLLBACK TO SAVEPOINT part");
    notes.Send(3);
    notes.session.Collect();
    transaction.Commit();
  }

  CHECK(notes.Count() == 2);
  CHECK_FALSE(notes.session.Run("SELECT 1 FROM notes WHERE number = 2"));
}

TEST_CASE("More can be sent than the sockets hold, and so can be answered", "[store]") {
  // Each is answered with some 40 bytes, and a socket holds some 200 KB.
  constexpr int kNotes = 30'000;
  Notes notes;
  if (!notes.Open()) return;
  const std::string text(500, 'x');

  {
    SqlTransaction transaction(notes.session);
    for (int i = 0; i < kNotes; ++i) notes.Send(i, text);
    notes.session.Collect();
    transaction.Commit();
  }

  CHECK(notes.Count() == kNotes);
}

TEST_CASE("A connection that is lost while statements are on their way is an error, once",
          "[store]") {
  Notes notes;
  if (!notes.Open()) return;
  bool is_failed = false;

  {
    const SqlTransaction transaction(notes.session);
    notes.Send(1);
    notes.server->Kill();
    try {
      notes.Send(2);
      notes.session.Collect();
    } catch (const soci::soci_error&) {
      is_failed = true;
    }
  }
  CHECK(is_failed);
  notes.session.Forget();
  notes.session.close();
  REQUIRE_THAT(notes.server->StartAgain(), IsOk());
  notes.Connect(notes.session);

  CHECK(notes.Count() == 0);
  notes.Send(1);
  CHECK(notes.Count() == 1);
}

}  // namespace mtmc::store
