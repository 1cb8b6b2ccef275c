// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace google::protobuf {
class Message;
}

namespace mtmc::client {

enum class OutputFormat { kTable, kJson };

// Whether standard output is a terminal that may be animated and coloured:
// not with NO_COLOR, TERM=dumb or CI set.
bool IsInteractive();

// Columns of text, aligned; numbers to the right. Value type.
class Table {
 public:
  // A column whose header begins with '>' is right-aligned.
  explicit Table(std::vector<std::string> headers);

  void AddRow(std::vector<std::string> cells);

  bool is_empty() const { return rows_.empty(); }

  void Print(std::ostream& out) const;

 private:
  std::vector<std::string> headers_;
  std::vector<std::vector<std::string>> rows_;
};

// Protobuf JSON with the contract's field names, one object, indented.
void PrintJson(const google::protobuf::Message& message, std::ostream& out);

// `12.3 ms`, `4.56 us`, three significant digits.
std::string FormatSeconds(double seconds);

// `3.67x`.
std::string FormatSpeedup(double speedup);

// `$0.0123` of millionths of a dollar, two significant digits at least.
std::string FormatDollars(int64_t micros);

// Bold or coloured for a terminal, plain otherwise.
std::string Bold(const std::string& text);
std::string Green(const std::string& text);
std::string Red(const std::string& text);
std::string Dim(const std::string& text);

}  // namespace mtmc::client
