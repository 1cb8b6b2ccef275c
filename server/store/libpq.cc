// SPDX-License-Identifier: Apache-2.0
#include "server/store/libpq.h"

#include <dlfcn.h>
#include <libpq-fe.h>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/error.h"

namespace mtmc::store {
namespace {

void* Library() {
  static void* const library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  return library;
}

void* Find(const char* name) {
  MTMC_CHECK(Library() != nullptr);
  void* const function = dlsym(Library(), name);
  MTMC_CHECK(function != nullptr);
  return function;
}

}  // namespace

absl::Status OpenLibpq() {
  if (Library() == nullptr) {
    return rpc::MakeError(absl::StatusCode::kFailedPrecondition, "LIBPQ_MISSING",
                          "PostgreSQL's client library libpq.so.5 cannot be opened; install "
                          "libpq5");
  }
  return absl::OkStatus();
}

bool HasPostgresPipelines() {
  static const bool has_them =
      Library() != nullptr && dlsym(Library(), "PQenterPipelineMode") != nullptr;
  return has_them;
}

}  // namespace mtmc::store

// What SOCI and this folder call. A declaration in its header that differs from one of
// these does not compile.
#define MTMC_FORWARD(result, name, parameters, arguments)                                       \
  extern "C" result name parameters {                                                           \
    static const auto function = reinterpret_cast<decltype(&::name)>(mtmc::store::Find(#name)); \
    return function arguments;                                                                  \
  }

MTMC_FORWARD(PGconn*, PQconnectdb, (const char* info), (info))
MTMC_FORWARD(void, PQfinish, (PGconn * connection), (connection))
MTMC_FORWARD(ConnStatusType, PQstatus, (const PGconn* connection), (connection))
MTMC_FORWARD(char*, PQerrorMessage, (const PGconn* connection), (connection))
MTMC_FORWARD(int, PQserverVersion, (const PGconn* connection), (connection))
MTMC_FORWARD(int, PQsocket, (const PGconn* connection), (connection))
MTMC_FORWARD(int, PQconsumeInput, (PGconn * connection), (connection))
MTMC_FORWARD(PQnoticeProcessor, PQsetNoticeProcessor,
             (PGconn * connection, PQnoticeProcessor process, void* argument),
             (connection, process, argument))
MTMC_FORWARD(PGnotify*, PQnotifies, (PGconn * connection), (connection))
MTMC_FORWARD(void, PQfreemem, (void* memory), (memory))
MTMC_FORWARD(PQconninfoOption*, PQconninfoParse, (const char* info, char** error), (info, error))
MTMC_FORWARD(void, PQconninfoFree, (PQconninfoOption * options), (options))

MTMC_FORWARD(PGresult*, PQexec, (PGconn * connection, const char* query), (connection, query))
MTMC_FORWARD(PGresult*, PQexecParams,
             (PGconn * connection, const char* command, int count, const Oid* types,
              const char* const* values, const int* lengths, const int* formats, int format),
             (connection, command, count, types, values, lengths, formats, format))
MTMC_FORWARD(PGresult*, PQprepare,
             (PGconn * connection, const char* name, const char* query, int count,
              const Oid* types),
             (connection, name, query, count, types))
MTMC_FORWARD(PGresult*, PQexecPrepared,
             (PGconn * connection, const char* name, int count, const char* const* values,
              const int* lengths, const int* formats, int format),
             (connection, name, count, values, lengths, formats, format))
MTMC_FORWARD(int, PQsendQuery, (PGconn * connection, const char* query), (connection, query))
MTMC_FORWARD(int, PQsendQueryParams,
             (PGconn * connection, const char* command, int count, const Oid* types,
              const char* const* values, const int* lengths, const int* formats, int format),
             (connection, command, count, types, values, lengths, formats, format))
MTMC_FORWARD(int, PQsendPrepare,
             (PGconn * connection, const char* name, const char* query, int count,
              const Oid* types),
             (connection, name, query, count, types))
MTMC_FORWARD(int, PQsendQueryPrepared,
             (PGconn * connection, const char* name, int count, const char* const* values,
              const int* lengths, const int* formats, int format),
             (connection, name, count, values, lengths, formats, format))
MTMC_FORWARD(int, PQenterPipelineMode, (PGconn * connection), (connection))
MTMC_FORWARD(int, PQpipelineSync, (PGconn * connection), (connection))
MTMC_FORWARD(int, PQexitPipelineMode, (PGconn * connection), (connection))
MTMC_FORWARD(int, PQsetSingleRowMode, (PGconn * connection), (connection))
MTMC_FORWARD(PGresult*, PQgetResult, (PGconn * connection), (connection))

MTMC_FORWARD(void, PQclear, (PGresult * result), (result))
MTMC_FORWARD(ExecStatusType, PQresultStatus, (const PGresult* result), (result))
MTMC_FORWARD(char*, PQresultErrorMessage, (const PGresult* result), (result))
MTMC_FORWARD(char*, PQresultErrorField, (const PGresult* result, int field), (result, field))
MTMC_FORWARD(char*, PQcmdTuples, (PGresult * result), (result))
MTMC_FORWARD(int, PQntuples, (const PGresult* result), (result))
MTMC_FORWARD(int, PQnfields, (const PGresult* result), (result))
MTMC_FORWARD(char*, PQfname, (const PGresult* result, int field), (result, field))
MTMC_FORWARD(int, PQfformat, (const PGresult* result, int field), (result, field))
MTMC_FORWARD(Oid, PQftype, (const PGresult* result, int field), (result, field))
MTMC_FORWARD(int, PQfsize, (const PGresult* result, int field), (result, field))
MTMC_FORWARD(char*, PQgetvalue, (const PGresult* result, int row, int field), (result, row, field))
MTMC_FORWARD(int, PQgetisnull, (const PGresult* result, int row, int field), (result, row, field))

MTMC_FORWARD(int, lo_open, (PGconn * connection, Oid id, int mode), (connection, id, mode))
MTMC_FORWARD(int, lo_close, (PGconn * connection, int fd), (connection, fd))
MTMC_FORWARD(int, lo_read, (PGconn * connection, int fd, char* buffer, size_t size),
             (connection, fd, buffer, size))
MTMC_FORWARD(int, lo_write, (PGconn * connection, int fd, const char* buffer, size_t size),
             (connection, fd, buffer, size))
MTMC_FORWARD(int, lo_lseek, (PGconn * connection, int fd, int offset, int whence),
             (connection, fd, offset, whence))

#undef MTMC_FORWARD
