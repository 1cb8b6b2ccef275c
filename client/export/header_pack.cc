// SPDX-License-Identifier: Apache-2.0
#include "client/export/header_pack.h"

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "common/base/file.h"
#include "kernel/program/source_lexer.h"

namespace mtmc::client {
namespace {

using kernel::SourceDirective;
using kernel::SourceToken;

constexpr char kPrelude[] = "mtmc_prelude.h";

// What headers whose names begin so include where it cannot be seen: those of the
// toolkit, which may not lie here, and those that name files by macros.
struct HiddenInclude {
  std::string_view user;
  std::string_view header;
};

constexpr HiddenInclude kHidden[] = {
    {"cooperative_groups", "cuda/atomic"},
    {"cooperative_groups", "cuda/std/functional"},
    {"cooperative_groups", "cuda/std/type_traits"},
    {"cooperative_groups", "nv/target"},
    {"cuda_awbarrier", "nv/target"},
    {"curand", "cuda/std/type_traits"},
    {"curand", "nv/target"},
    {"thrust/iterator/detail/device_system_tag.h", "thrust/system/cuda/detail/execution_policy.h"},
    {"thrust/iterator/detail/host_system_tag.h", "thrust/system/cpp/detail/execution_policy.h"}};

// The name between quotes or angles; empty for a macro.
std::string IncludedName(const SourceDirective& directive) {
  const std::string_view operand = directive.operand;
  if (directive.name != "include" || operand.size() < 3) return "";
  const char closing = operand.front() == '<' ? '>' : operand.front();
  if (closing != '>' && closing != '"') return "";
  const size_t end = operand.find(closing, 1);
  return end == std::string_view::npos ? "" : std::string(operand.substr(1, end - 1));
}

class HeaderFinder {
 public:
  explicit HeaderFinder(const std::vector<std::filesystem::path>& folders) : folders_(folders) {}

  Headers Run(std::string_view source) {
    Read(source);
    if (UsesPrelude(source)) Add(kPrelude);
    while (!waiting_.empty()) {
      const std::string text = std::move(waiting_.back());
      waiting_.pop_back();
      Read(text);
    }
    return std::move(found_);
  }

 private:
  // Adds what `text` includes.
  void Read(std::string_view text) {
    const kernel::LexedSource lexed = kernel::LexSource(text, kernel::Dialect::kCuda);
    for (const SourceDirective& directive : lexed.directives()) Add(IncludedName(directive));
  }

  void Add(const std::string& name) {
    if (name.empty() || name.find("..") != std::string::npos || !seen_.insert(name).second) return;
    for (const HiddenInclude& hidden : kHidden) {
      if (name.starts_with(hidden.user)) Add(std::string(hidden.header));
    }
    for (const std::filesystem::path& folder : folders_) {
      std::error_code ignored;
      if (!std::filesystem::is_regular_file(folder / name, ignored)) continue;
      auto text = base::ReadFile(folder / name);
      if (!text.ok()) continue;
      waiting_.push_back(*text);
      found_.emplace(name, *std::move(text));
      return;
    }
  }

  // Whether `source` names what the prelude defines and it does not.
  bool UsesPrelude(std::string_view source) const {
    const kernel::LexedSource lexed = kernel::LexSource(source, kernel::Dialect::kCuda);
    std::set<std::string, std::less<>> own;
    for (const SourceDirective& directive : lexed.directives()) {
      if (!directive.tokens.empty()) own.emplace(directive.tokens.front().text);
    }
    const std::set<std::string, std::less<>> known =
        HeaderFinder(folders_).DefinedBy({kPrelude, "float.h", "limits.h", "math.h", "stdint.h"});
    return std::any_of(lexed.tokens().begin(), lexed.tokens().end(), [&](const SourceToken& token) {
      return token.kind == SourceToken::Kind::kWord && !own.contains(token.text) &&
             (known.contains(token.text) || token.text == "numeric_limits");
    });
  }

  // Macros, and names that stand before a `;`, as a typedef's does.
  std::set<std::string, std::less<>> DefinedBy(const std::vector<std::string>& names) {
    for (const std::string& name : names) Add(name);
    std::set<std::string, std::less<>> defined;
    for (const std::string& text : waiting_) {
      const kernel::LexedSource lexed = kernel::LexSource(text, kernel::Dialect::kCuda);
      for (const SourceDirective& directive : lexed.directives()) {
        const bool is_macro = directive.name == "define" && !directive.tokens.empty();
        if (is_macro) defined.emplace(directive.tokens.front().text);
      }
      const std::vector<SourceToken>& tokens = lexed.tokens();
      for (size_t i = 1; i < tokens.size(); ++i) {
        if (tokens[i].text == ";") defined.emplace(tokens[i - 1].text);
      }
    }
    return defined;
  }

  const std::vector<std::filesystem::path>& folders_;
  std::set<std::string> seen_;
  // Texts that nothing has been looked for in.
  std::vector<std::string> waiting_;
  Headers found_;
};

}  // namespace

Headers FindHeaders(std::string_view source, const std::vector<std::filesystem::path>& folders) {
  return HeaderFinder(folders).Run(source);
}

std::string PackHeaders(const Headers& headers) {
  if (headers.empty()) return "";
  const std::string text = nlohmann::json(headers).dump(-1, ' ', /*ensure_ascii=*/true,
                                                        nlohmann::json::error_handler_t::replace);
  std::string packed;
  {
    google::protobuf::io::StringOutputStream bytes(&packed);
    google::protobuf::io::GzipOutputStream::Options options;
    options.format = google::protobuf::io::GzipOutputStream::ZLIB;
    options.compression_level = 9;
    google::protobuf::io::GzipOutputStream stream(&bytes, options);
    for (size_t at = 0; at < text.size();) {
      void* room = nullptr;
      int size = 0;
      if (!stream.Next(&room, &size)) return "";
      const size_t part = std::min(static_cast<size_t>(size), text.size() - at);
      text.copy(static_cast<char*>(room), part, at);
      stream.BackUp(size - static_cast<int>(part));
      at += part;
    }
  }
  return absl::Base64Escape(packed);
}

}  // namespace mtmc::client
