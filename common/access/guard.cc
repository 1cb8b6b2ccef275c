// SPDX-License-Identifier: Apache-2.0
#include "common/access/guard.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/access/caller.h"
#include "common/access/rule_table.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/rpc/error.h"

namespace mtmc::access {
namespace {

using base::ToAbsl;

constexpr std::string_view kBearer = "Bearer ";

absl::Status RateExceeded(absl::Duration wait) {
  return rpc::WithRetryDelay(
      rpc::MakeError(absl::StatusCode::kResourceExhausted, "REQUEST_RATE_EXCEEDED",
                     absl::StrCat("more calls a second than one caller may make; call again in ",
                                  absl::FormatDuration(wait))),
      wait);
}

absl::Status NotBearer() {
  return rpc::MakeError(absl::StatusCode::kUnauthenticated, "TOKEN_INVALID",
                        "the token is nobody's; ask for a new one");
}

// What the caller would have to have, and where.
absl::Status RoleMissing(const Identity& identity, const Rule& rule, std::string_view resource) {
  const std::string project = ProjectOf(resource);
  std::string where = "in every project";
  if (rule.scope == Rule::Scope::kAnyProject) where = "in some project";
  if (rule.scope == Rule::Scope::kProject) {
    where = project.empty() ? "in the project that the request must name"
                            : absl::StrCat("in project ", project.substr(0, 64));
  }
  return rpc::MakeError(
      absl::StatusCode::kPermissionDenied, "ROLE_MISSING",
      absl::StrCat(ToAbsl(rule.method), " takes role ", ToAbsl(RoleName(rule.least)), " ", where,
                   ", which ", identity.name, " does not have"),
      {{"role", std::string(RoleName(rule.least))}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Guard>> Guard::Create(const Options& options, base::Clock& clock) {
  std::unique_ptr<TokenFile> tokens;
  std::unique_ptr<JwtVerifier> jwt;
  if (!options.token_file.empty() || !options.jwt) {
    MTMC_ASSIGN_OR_RETURN(tokens, TokenFile::Open(options.token_file, clock));
  }
  if (options.jwt) {
    MTMC_ASSIGN_OR_RETURN(jwt, JwtVerifier::Open(*options.jwt, clock));
  }
  if (!options.audit_log.empty()) MTMC_RETURN_IF_ERROR(AuditLog::Check(options.audit_log));
  return std::unique_ptr<Guard>(new Guard(std::move(tokens), std::move(jwt), options, clock));
}

Guard::Guard(std::unique_ptr<TokenFile> tokens, std::unique_ptr<JwtVerifier> jwt,
             const Options& options, base::Clock& clock)
    : clock_(clock), tokens_(std::move(tokens)), jwt_(std::move(jwt)) {
  if (!options.audit_log.empty()) audit_.emplace(options.audit_log);
  if (options.requests_per_second > 0) rate_.emplace(options.requests_per_second, clock);
}

absl::StatusOr<Identity> Guard::Authenticate(const rpc::ArrivedCall& call) {
  if (call.authorization.empty()) {
    return rpc::MakeError(absl::StatusCode::kUnauthenticated, "TOKEN_MISSING",
                          "the call has no bearer token; give --token-file or MTMC_TOKEN_FILE");
  }
  std::string_view token = call.authorization.front();
  // Two tokens could be meant for two judges.
  const bool is_bearer =
      call.authorization.size() == 1 && token.size() > kBearer.size() &&
      absl::EqualsIgnoreCase(ToAbsl(token.substr(0, kBearer.size())), ToAbsl(kBearer));
  if (is_bearer) {
    token.remove_prefix(kBearer.size());
    if (jwt_ && LooksLikeJwt(token)) return jwt_->Verify(token);
    if (!tokens_) return NotBearer();
    if (std::optional<Identity> identity = tokens_->Find(token)) return *std::move(identity);
  }
  return NotBearer();
}

rpc::Gate::Decision Guard::Decide(const rpc::ArrivedCall& call) {
  const absl::StatusOr<Identity> identity = Authenticate(call);
  // Who is nobody leaves no line: anybody could fill the disk.
  if (!identity.ok()) return {.status = identity.status(), .on_end = {}};
  const bool is_counted = rate_ && !IsMachine(*identity);
  const absl::Duration wait = is_counted ? rate_->Take(identity->name) : absl::ZeroDuration();
  if (wait > absl::ZeroDuration()) return {.status = RateExceeded(wait), .on_end = {}};
  const Rule* rule = FindRule(call.service, call.method);
  // A method that is newer than the table.
  static const Rule kClosed;
  if (rule == nullptr) return {.status = RoleMissing(*identity, kClosed, ""), .on_end = {}};
  const std::string resource = ResourceOf(*rule, call.request);
  const Grant* grant = FindGrant(*identity, *rule, resource);
  Decision decision{.status = {},
                    .on_end = {},
                    .caller = identity->name,
                    .caller_note = WriteGrants(identity->grants)};
  if (grant == nullptr) decision.status = RoleMissing(*identity, *rule, resource);
  if (!audit_ || (!rule->is_audited && !rule->is_refusal_audited)) return decision;
  AuditEntry entry{.time = clock_.Now(),
                   .who = identity->name,
                   .role = grant == nullptr ? "" : std::string(RoleName(grant->role)),
                   .method = absl::StrCat(ToAbsl(call.service), "/", ToAbsl(call.method)),
                   .resource = resource,
                   .peer = call.peer};
  const bool is_refusal_only = !rule->is_audited;
  decision.on_end = [this, is_refusal_only,
                     entry = std::move(entry)](absl::StatusCode code) mutable {
    if (is_refusal_only && code != absl::StatusCode::kPermissionDenied) return;
    entry.status = code;
    audit_->Write(entry);
  };
  return decision;
}

}  // namespace mtmc::access
