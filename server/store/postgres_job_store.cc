// SPDX-License-Identifier: Apache-2.0
#include "server/store/postgres_job_store.h"

#include <libpq-fe.h>
#include <soci/postgresql/soci-postgresql.h>
#include <soci/soci.h>

#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/store/libpq.h"
#include "server/store/postgres_pipeline.h"
#include "server/store/sql_database.h"
#include "server/store/sql_session.h"

namespace mtmc::store {
namespace {

// Older ones get no fixes any more, and nobody has tried them.
constexpr int kOldestServer = 130000;
// An arbitrary number that only mtmc uses: the lock of the schema.
constexpr char kLockSchema[] = "SELECT pg_advisory_xact_lock(7236832)";
// A plan is kept until the table is analyzed again, once a minute at most. One that was made for a
// table of a few rows reads all of it, and took 24 ms for a row of 60,000 that an index finds in
// 20 us. What this makes a plan cost is no reason to compile it.
constexpr char kPlanByIndex[] = "SET enable_seqscan = off; SET jit = off";
// In bytes; PostgreSQL takes less than 8,000.
constexpr size_t kMaxPayload = 7'900;

// A server that is there answers within milliseconds; one that is not is known after
// these seconds instead of TCP's quarter of an hour.
const std::map<std::string, std::string>& Defaults() {
  static const auto& defaults =
      *new std::map<std::string, std::string>{{"application_name", "mtmc-coordinator"},
                                              {"connect_timeout", "5"},
                                              {"keepalives_idle", "5"},
                                              {"keepalives_interval", "2"},
                                              {"keepalives_count", "3"},
                                              {"tcp_user_timeout", "5000"}};
  return defaults;
}

absl::StatusOr<std::map<std::string, std::string>> Parse(const std::string& address) {
  MTMC_RETURN_IF_ERROR(OpenLibpq());
  char* error = nullptr;
  PQconninfoOption* options = PQconninfoParse(address.c_str(), &error);
  if (options == nullptr) {
    std::string message = error == nullptr ? "out of memory" : error;
    absl::StripAsciiWhitespace(&message);
    if (error != nullptr) PQfreemem(error);
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_STORE",
                          absl::StrCat("the address of the store is no address of a PostgreSQL "
                                       "database, as postgresql://user@host/database: ",
                                       message));
  }
  std::map<std::string, std::string> values;
  for (const PQconninfoOption* option = options; option->keyword != nullptr; ++option) {
    if (option->val != nullptr) values[option->keyword] = option->val;
  }
  PQconninfoFree(options);
  return values;
}

std::string Trimmed(std::string message) {
  absl::StripAsciiWhitespace(&message);
  return absl::StrReplaceAll(message, {{"\n", " "}});
}

soci::postgresql_session_backend& BackendOf(soci::session& session) {
  return *static_cast<soci::postgresql_session_backend*>(session.get_backend());
}

PGconn* ConnectionOf(soci::session& session) { return BackendOf(session).conn_; }

class Postgres final : public SqlDatabase {
 public:
  explicit Postgres(std::string info) : info_(std::move(info)) {}

  void Connect(SqlSession& session, Use use) const override {
    session.open(soci::postgresql, info_);
    // libpq prints what is no error to the standard error otherwise.
    PQsetNoticeProcessor(
        ConnectionOf(session), [](void*, const char*) {}, nullptr);
    session << kPlanByIndex;
    if (use == Use::kWrites && HasPostgresPipelines()) {
      session.SendThrough(std::make_unique<PostgresPipeline>(BackendOf(session)));
    }
  }

  bool IsLost(soci::session& session) const override {
    return session.get_backend() == nullptr || PQstatus(ConnectionOf(session)) != CONNECTION_OK;
  }

  absl::Status ToStatus(const soci::soci_error& error) const override {
    const std::string message = Trimmed(error.what());
    const auto* postgres = dynamic_cast<const soci::postgresql_soci_error*>(&error);
    const std::string state = postgres == nullptr ? "" : postgres->sqlstate();
    if (state == "53100") {
      return rpc::MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL",
                            "the disk of the PostgreSQL server is full; free space there and try "
                            "again");
    }
    if (state == "23505") {
      return rpc::MakeError(absl::StatusCode::kAlreadyExists, "ALREADY_EXISTS", message);
    }
    return rpc::MakeError(absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE",
                          absl::StrCat("PostgreSQL failed, try again: ", message));
  }

  void LockSchema(soci::session& session) const override { session << kLockSchema; }

  std::string RowLock() const override { return " FOR SHARE"; }

  bool CanLoseCommits() const override { return true; }

  void Announce(SqlSession& session, const std::set<std::string>& jobs) const override {
    std::string payload;
    const auto notify = [&] {
      session.Send(notify_, {payload});
      payload.clear();
    };
    for (const std::string& job : jobs) {
      if (!payload.empty() && payload.size() + 1 + job.size() > kMaxPayload) notify();
      absl::StrAppend(&payload, payload.empty() ? "" : kEventSeparator, job);
    }
    if (!payload.empty()) notify();
  }

 private:
  const std::string info_;
  const std::string notify_ = absl::StrCat("SELECT pg_notify('", kEventChannel, "', :jobs)");
};

absl::Status CheckVersion(const std::string& info) {
  PGconn* connection = PQconnectdb(info.c_str());
  const bool is_connected = PQstatus(connection) == CONNECTION_OK;
  const int version = is_connected ? PQserverVersion(connection) : 0;
  const std::string message = Trimmed(PQerrorMessage(connection));
  PQfinish(connection);
  if (!is_connected) {
    return rpc::MakeError(absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE",
                          absl::StrCat("PostgreSQL cannot be reached: ", message,
                                       "; start it, or correct the address of the store"));
  }
  if (version >= kOldestServer) return absl::OkStatus();
  return rpc::MakeError(absl::StatusCode::kFailedPrecondition, "STORE_TOO_OLD",
                        absl::StrCat("the PostgreSQL server has version ", version / 10000,
                                     ", must be at least ", kOldestServer / 10000));
}

}  // namespace

absl::StatusOr<std::string> PostgresConnectionInfo(const std::string& address) {
  MTMC_ASSIGN_OR_RETURN(auto values, Parse(address));
  values.insert(Defaults().begin(), Defaults().end());
  return absl::StrJoin(values, " ", [](std::string* out, const auto& entry) {
    const std::string value = absl::StrReplaceAll(entry.second, {{"\\", "\\\\"}, {"'", "\\'"}});
    absl::StrAppend(out, entry.first, "='", value, "'");
  });
}

absl::StatusOr<std::string> ShownPostgresAddress(const std::string& address) {
  MTMC_ASSIGN_OR_RETURN(auto values, Parse(address));
  const std::string port = values["port"].empty() ? "5432" : values["port"];
  return absl::StrCat(values["user"], values["user"].empty() ? "" : "@",
                      values["host"].empty() ? "localhost" : values["host"], ":", port, "/",
                      values["dbname"]);
}

absl::StatusOr<std::unique_ptr<PostgresJobStore>> PostgresJobStore::Open(
    const std::string& address) {
  MTMC_ASSIGN_OR_RETURN(const std::string info, PostgresConnectionInfo(address));
  MTMC_RETURN_IF_ERROR(CheckVersion(info));
  auto store =
      std::unique_ptr<PostgresJobStore>(new PostgresJobStore(std::make_unique<Postgres>(info)));
  MTMC_RETURN_IF_ERROR(store->SqlJobStore::Open());
  return store;
}

}  // namespace mtmc::store
