// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::client {

// How the forward pass of an exported file finds the tensors of its model: every module is looked
// up once, in the dictionary that keeps it, since an attribute of a module costs ten times as
// much and the GPU has nothing to do meanwhile. Thread-compatible.
class ModuleWriter {
 public:
  // The expression of the parameter `path`: `module_1._parameters["weight"]` for fc.weight.
  std::string Parameter(std::string_view path);

  // That of the buffer `path`, or of the plain attribute, which goes where the tensor `beside` is.
  std::string Buffer(std::string_view path, std::string_view beside);

  // Statements that come before all expressions so far.
  const std::vector<std::string>& Preparation() const { return lines_; }

 private:
  // The variable of the module `path`; of the model itself where that is empty.
  std::string Module(std::string_view path);

  // By path.
  std::map<std::string, std::string, std::less<>> modules_;
  std::vector<std::string> lines_;
};

}  // namespace mtmc::client
