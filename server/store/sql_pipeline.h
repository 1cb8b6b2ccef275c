// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <variant>

namespace soci {
class statement;
}  // namespace soci

namespace mtmc::store {

// What a statement is sent with: NULL, a whole number, or a text, which is referred to.
using SqlValue = std::variant<std::monostate, long long, std::reference_wrapper<const std::string>>;

// The statements of a session that are on their way to a database, so that many of them wait
// for one answer. While there is one on its way, nothing else may be done with the session.
// Throws what SOCI throws. A resource; thread-compatible. Private to this folder.
class SqlPipeline {
 public:
  virtual ~SqlPipeline() = default;

  // Sends `statement`, which is prepared and whose rows nobody wants, with what stands for its
  // parameters, in order. Returns before it is done, and keeps nothing of `values`.
  virtual void Send(soci::statement& statement, std::span<const SqlValue> values) = 0;

  // Waits until all that was sent is done, and throws the first error: what was sent after it
  // was not done. In both cases nothing is on its way any more.
  virtual void Collect() = 0;
};

}  // namespace mtmc::store
