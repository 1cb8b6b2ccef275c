// SPDX-License-Identifier: Apache-2.0
#include "server/store/sql_session.h"

#include <exception>
#include <vector>

namespace mtmc::store {
namespace {

// Binds each of `values`, which refers to a number, a text or nothing, to `statement`.
void Bind(soci::statement& statement, std::span<const SqlValue> values,
          std::vector<long long>& numbers, soci::indicator& nothing) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (const auto* text = std::get_if<std::reference_wrapper<const std::string>>(&values[i])) {
      statement.exchange(soci::use(text->get()));
    } else if (const auto* number = std::get_if<long long>(&values[i])) {
      numbers[i] = *number;
      statement.exchange(soci::use(numbers[i]));
    } else {
      statement.exchange(soci::use(numbers[i], nothing));
    }
  }
}

}  // namespace

void SqlSession::Send(std::string_view text, std::initializer_list<SqlValue> values) {
  const std::span<const SqlValue> span(values.begin(), values.size());
  if (pipeline_ != nullptr) {
    // To prepare one is a way there and back.
    const auto known = prepared_.find(text);
    if (known == prepared_.end() || known->second == nullptr) Collect();
    std::unique_ptr<soci::statement> statement = TakeStatement(text);
    pipeline_->Send(*statement, span);
    prepared_.find(text)->second = std::move(statement);
    return;
  }
  std::vector<long long> numbers(values.size());
  soci::indicator nothing = soci::i_null;
  std::unique_ptr<soci::statement> statement = TakeStatement(text);
  Bind(*statement, span, numbers, nothing);
  statement->define_and_bind();
  statement->execute(/*withDataExchange=*/true);
  statement->bind_clean_up();
  prepared_.find(text)->second = std::move(statement);
}

std::unique_ptr<soci::statement> SqlSession::TakeStatement(std::string_view text) {
  auto found = prepared_.find(text);
  if (found == prepared_.end()) found = prepared_.emplace(text, nullptr).first;
  if (found->second != nullptr) return std::move(found->second);
  auto statement = std::make_unique<soci::statement>(*this);
  statement->alloc();
  statement->prepare(found->first);
  return statement;
}

SqlTransaction::~SqlTransaction() {
  if (is_over_) return;
  try {
    session_.Collect();
  } catch (const std::exception&) {
    // It is undone in any case.
  }
  try {
    session_.rollback();
  } catch (const std::exception&) {
    // With its connection.
  }
}

void SqlTransaction::Commit() {
  session_.commit();
  is_over_ = true;
}

}  // namespace mtmc::store
