// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/access/audit_log.h"
#include "common/access/jwt.h"
#include "common/access/rate_limit.h"
#include "common/access/token_table.h"
#include "common/base/clock.h"
#include "common/rpc/gate.h"

namespace mtmc::access {

// Lets calls in by the bearer token that they carry and the rule of their method. A call
// is refused as
//
//   UNAUTHENTICATED    TOKEN_MISSING          it has no token
//   UNAUTHENTICATED    TOKEN_INVALID          nobody's, or not `Bearer TOKEN`
//   UNAUTHENTICATED    TOKEN_EXPIRED          a JWT that was valid once
//   RESOURCE_EXHAUSTED REQUEST_RATE_EXCEEDED  its caller calls too often; with RetryInfo
//   PERMISSION_DENIED  ROLE_MISSING           its caller has not the role there
//
// None says whether a resource exists, and none has the token. Thread-safe.
class Guard final : public rpc::Gate {
 public:
  struct Options {
    // Hashes of tokens; empty if there are none.
    std::string token_file;
    // For JWT; those of one of the two at least are accepted.
    std::optional<JwtVerifier::Options> jwt{};
    // Empty writes none.
    std::string audit_log;
    // For each name that is no machine (IsMachine): those call as often as their work takes,
    // and many of them may share a name. 0 is no limit.
    double requests_per_second = 0;
  };

  // `clock` is borrowed. Errors are those of TokenFile, JwtVerifier and AuditLog.
  static absl::StatusOr<std::unique_ptr<Guard>> Create(const Options& options, base::Clock& clock);

  Decision Decide(const rpc::ArrivedCall& call) override;

 private:
  Guard(std::unique_ptr<TokenFile> tokens, std::unique_ptr<JwtVerifier> jwt, const Options& options,
        base::Clock& clock);

  absl::StatusOr<Identity> Authenticate(const rpc::ArrivedCall& call);

  base::Clock& clock_;
  // One of them may be null.
  const std::unique_ptr<TokenFile> tokens_;
  const std::unique_ptr<JwtVerifier> jwt_;
  std::optional<AuditLog> audit_;
  std::optional<RateLimit> rate_;
};

}  // namespace mtmc::access
