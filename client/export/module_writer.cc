// SPDX-License-Identifier: Apache-2.0
#include "client/export/module_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/export/python_text.h"

namespace mtmc::client {
namespace {

// `a.b` and `c` of `a.b.c`.
std::pair<std::string_view, std::string_view> OwnerAndName(std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return {{}, path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

}  // namespace

std::string ModuleWriter::Parameter(std::string_view path) {
  const auto [owner, name] = OwnerAndName(path);
  return absl::StrCat(Module(owner), "._parameters[", Quoted(name), "]");
}

std::string ModuleWriter::Buffer(std::string_view path, std::string_view beside) {
  const auto [owner, name] = OwnerAndName(path);
  return absl::StrCat("_mtmc_buffer(", Module(owner), ", ", Quoted(name), ", ",
                      absl::string_view(beside.data(), beside.size()), ")");
}

std::string ModuleWriter::Module(std::string_view path) {
  if (path.empty()) return "self";
  if (const auto found = modules_.find(path); found != modules_.end()) return found->second;
  const auto [owner, name] = OwnerAndName(path);
  const std::string parent = Module(owner);
  std::string variable = absl::StrCat("module_", modules_.size() + 1);
  lines_.push_back(absl::StrCat(variable, " = ", parent, "._modules[", Quoted(name), "]"));
  return modules_.emplace(path, std::move(variable)).first->second;
}

}  // namespace mtmc::client
