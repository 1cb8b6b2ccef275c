// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernel/graph/graph.h"

namespace mtmc::client {

// How the forward pass of an exported file finds its tensors in `arguments`, the tuple of what
// it was called with. Thread-compatible.
class ArgumentWriter {
 public:
  explicit ArgumentWriter(const kernel::Graph& graph);

  // The expression of a tensor argument of the graph.
  const std::string& Tensor(const std::string& input) const { return tensors_.at(input); }

  // That of the first one; `None` without any.
  std::string First() const;

  // Statements that come before all expressions: they bring the arguments into the order that
  // the program was made for, and refuse others than that.
  std::vector<std::string> Preparation() const;

 private:
  void Add(const kernel::Structure& structure, const std::string& place);

  // In the order of the arguments.
  std::map<std::string, std::string> tensors_;
  std::string first_;
  // Conditions that the arguments meet.
  std::vector<std::string> conditions_;
  size_t num_arguments_ = 0;
};

}  // namespace mtmc::client
