// SPDX-License-Identifier: Apache-2.0
#include "server/store/postgres_pipeline.h"

#include <libpq-fe.h>
#include <soci/postgresql/soci-postgresql.h>
#include <soci/soci.h>

#include <string>
#include <vector>

namespace mtmc::store {
namespace {

// Formats of a parameter.
constexpr int kAsText = 0;
constexpr int kAsBytes = 1;

constexpr char kFailed[] = "Cannot execute a statement.";

// Parameters as libpq takes them. A text is sent as bytes, which need not be counted again.
struct Parameters {
  explicit Parameters(std::span<const SqlValue> values)
      : numbers(values.size()),
        pointers(values.size(), nullptr),
        lengths(values.size(), 0),
        formats(values.size(), kAsText) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (const auto* text = std::get_if<std::reference_wrapper<const std::string>>(&values[i])) {
        pointers[i] = text->get().c_str();
        lengths[i] = static_cast<int>(text->get().size());
        formats[i] = kAsBytes;
      } else if (const auto* number = std::get_if<long long>(&values[i])) {
        numbers[i] = std::to_string(*number);
        pointers[i] = numbers[i].c_str();
      }
    }
  }

  std::vector<std::string> numbers;
  std::vector<const char*> pointers;
  std::vector<int> lengths;
  std::vector<int> formats;
};

}  // namespace

void PostgresPipeline::Send(soci::statement& statement, std::span<const SqlValue> values) {
  const auto& prepared = *static_cast<soci::postgresql_statement_backend*>(statement.get_backend());
  const Parameters parameters(values);
  PGconn* const connection = session_.conn_;
  const bool is_sent =
      (is_sending_ || PQenterPipelineMode(connection) == 1) &&
      PQsendQueryPrepared(connection, prepared.statementName_.c_str(),
                          static_cast<int>(values.size()), parameters.pointers.data(),
                          parameters.lengths.data(), parameters.formats.data(), kAsText) == 1;
  is_sending_ = true;
  if (is_sent) return;
  Collect();
  Refuse("Cannot send a statement.");
}

void PostgresPipeline::Collect() {
  if (!is_sending_) return;
  is_sending_ = false;
  PGconn* const connection = session_.conn_;
  soci::details::postgresql_result error(session_, nullptr);
  bool is_over = PQpipelineSync(connection) != 1;
  bool is_answered = false;
  // The results of each statement end with a null, and all of them with that of the sync. Two
  // nulls in a row are the end, too, of a connection that is lost.
  bool was_null = false;
  while (!is_over) {
    PGresult* const result = PQgetResult(connection);
    const ExecStatusType status = PQresultStatus(result);
    is_answered = status == PGRES_PIPELINE_SYNC;
    is_over = is_answered || (result == nullptr && was_null);
    was_null = result == nullptr;
    if (status == PGRES_FATAL_ERROR && result != nullptr && error.get_result() == nullptr) {
      error.reset(result);
    } else {
      PQclear(result);
    }
  }
  PQexitPipelineMode(connection);
  if (error.get_result() != nullptr) error.check_for_errors(kFailed);
  if (!is_answered) Refuse(kFailed);
}

void PostgresPipeline::Refuse(const char* what) {
  // No result is an error without words of the server's.
  soci::details::postgresql_result(session_, nullptr).check_for_errors(what);
}

}  // namespace mtmc::store
