// SPDX-License-Identifier: Apache-2.0
#include "common/access/token_table.h"

#include <openssl/rand.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/rpc/error.h"

namespace mtmc::access {
namespace {

using base::ToAbsl;

constexpr absl::Duration kLook = absl::Seconds(1);
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{16} << 20;

absl::Status Invalid(std::string_view what) {
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "TOKENS_INVALID", what);
}

absl::Status InvalidLine(int line, std::string_view what) {
  return Invalid(absl::StrCat("line ", line, " of the token file ", ToAbsl(what)));
}

}  // namespace

absl::StatusOr<TokenTable> TokenTable::Parse(std::string_view text) {
  TokenTable table;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
    ++number;
    const absl::string_view stripped = absl::StripAsciiWhitespace(line);
    if (stripped.empty() || stripped.front() == '#') continue;
    const std::vector<std::string> words =
        absl::StrSplit(stripped, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() != 4) return InvalidLine(number, "has not the form NAME ROLE PROJECT SHA256");
    const auto role = FindRole(words[1]);
    if (!role) {
      return InvalidLine(number, "has no role viewer, submitter, worker or administrator");
    }
    if (*role == Role::kWorker && words[2] != kAllProjects) {
      return InvalidLine(number, "gives role worker in one project; workers serve all, say *");
    }
    if (!base::Digest{words[3]}.is_valid()) {
      return InvalidLine(number, "has no SHA-256 of 64 lower-case hexadecimal digits");
    }
    Identity& identity = table.identities[words[3]];
    if (!identity.name.empty() && identity.name != words[0]) {
      return InvalidLine(number, "gives a token to a second name");
    }
    identity.name = words[0];
    identity.grants.push_back({.role = *role, .project = words[2]});
  }
  return table;
}

std::string MakeToken() {
  std::array<unsigned char, 32> bytes;
  MTMC_CHECK(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1);
  const absl::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return absl::StrCat("mtmc_", absl::BytesToHexString(view));
}

std::string TokenLine(std::string_view name, Role role, std::string_view project,
                      std::string_view token) {
  return absl::StrCat(ToAbsl(name), " ", ToAbsl(RoleName(role)), " ", ToAbsl(project), " ",
                      base::Sha256(token).sha256_hex);
}

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Open(const std::string& path,
                                                           base::Clock& clock) {
  std::unique_ptr<TokenFile> file(new TokenFile(path, clock));
  absl::MutexLock lock(&file->mu_);
  MTMC_RETURN_IF_ERROR(file->Read());
  return file;
}

TokenFile::TokenFile(std::string path, base::Clock& clock)
    : path_(std::move(path)), clock_(clock), next_look_(clock.Now() + kLook) {}

std::optional<Identity> TokenFile::Find(std::string_view token) {
  // Of a hash only, whose bytes say nothing about the token however long a look takes.
  const std::string hash = base::Sha256(token).sha256_hex;
  absl::MutexLock lock(&mu_);
  if (const absl::Time now = clock_.Now(); now >= next_look_) {
    next_look_ = now + kLook;
    const absl::Status status = Read();
    if (!status.ok()) {
      base::Log(base::LogLevel::kError, "the token file cannot be used, the old one holds",
                {{"file", path_}, {"message", base::ToStd(status.message())}});
    }
  }
  const auto found = table_.identities.find(hash);
  if (found == table_.identities.end()) return std::nullopt;
  return found->second;
}

absl::Status TokenFile::Read() {
  absl::StatusOr<std::string> text = base::ReadFile(path_, kMaxFileBytes);
  if (!text.ok()) {
    return Invalid(absl::StrCat("\"", path_, "\" cannot be read: ", text.status().message()));
  }
  if (*text == text_) return absl::OkStatus();
  // A bad text is complained of once.
  text_ = *std::move(text);
  MTMC_ASSIGN_OR_RETURN(table_, TokenTable::Parse(text_));
  return absl::OkStatus();
}

}  // namespace mtmc::access
