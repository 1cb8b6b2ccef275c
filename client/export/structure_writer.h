// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "kernel/graph/structure.h"

namespace mtmc::client {

// Writes what a forward pass returns as one Python expression. Thread-compatible.
class StructureWriter {
 public:
  // `leaves` has the expression of each output and input. REQUIRES: of all that is named.
  explicit StructureWriter(const std::map<std::string, std::string>& leaves) : leaves_(leaves) {}

  std::string Write(const kernel::Structure& structure);

  // The lines that find the classes of what was written, to run once. They and the
  // expressions need the runtime's `classes` where there are any.
  const std::string& prepared() const { return prepared_; }

 private:
  std::string WriteContainer(const kernel::Structure::Container& container);
  std::string Class(const kernel::Structure::Container& container);

  const std::map<std::string, std::string>& leaves_;
  // Variables by the expressions that find the classes.
  std::map<std::string, std::string> classes_;
  std::string prepared_;
};

}  // namespace mtmc::client
