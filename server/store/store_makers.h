// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/temp_dir.h"
#include "common/testing/status_matchers.h"
#include "server/store/fake_job_store.h"
#include "server/store/postgres_job_store.h"
#include "server/store/postgres_server.h"
#include "server/store/sqlite_job_store.h"

namespace mtmc::store {

// Each implementation of JobStore and OwnerStore, for the tests of their contract: a
// maker opens a new store, and IsThere says whether this host has what it needs.

struct SqliteMaker {
  base::TempDir folder = *base::TempDir::Create("store");

  bool IsThere() const { return true; }

  std::unique_ptr<SqlJobStore> Open(SqliteJobStore::Options options = {
                                        .survives_power_loss = false}) {
    auto store = SqliteJobStore::Open((folder.path() / "mtmc.db").string(), options);
    REQUIRE_THAT(store.status(), testing::IsOk());
    return *std::move(store);
  }

  // The same again, as another process finds it.
  std::unique_ptr<SqlJobStore> Reopen(std::unique_ptr<SqlJobStore> store) {
    store.reset();
    return Open();
  }
};

struct PostgresMaker {
  absl::StatusOr<PostgresServer> server = PostgresServer::Start();
  std::string database;

  bool IsThere() const {
    if (!absl::IsNotFound(server.status())) return true;
    std::cout << "SKIPPED: " << server.status().message() << std::endl;
    return false;
  }

  std::unique_ptr<SqlJobStore> Open() {
    REQUIRE_THAT(server.status(), testing::IsOk());
    database = *server->CreateDatabase();
    return Reopen(nullptr);
  }

  std::unique_ptr<SqlJobStore> Reopen(std::unique_ptr<SqlJobStore> store) {
    store.reset();
    auto opened = PostgresJobStore::Open(database);
    REQUIRE_THAT(opened.status(), testing::IsOk());
    return *std::move(opened);
  }
};

struct FakeMaker {
  bool IsThere() const { return true; }

  std::unique_ptr<FakeJobStore> Open() { return std::make_unique<FakeJobStore>(); }

  std::unique_ptr<FakeJobStore> Reopen(std::unique_ptr<FakeJobStore> store) { return store; }
};

}  // namespace mtmc::store
