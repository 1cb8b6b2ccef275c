// SPDX-License-Identifier: Apache-2.0
#include "common/access/jwt.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/access/base64url.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/rpc/error.h"

namespace mtmc::access {
namespace {

using Json = nlohmann::json;
using base::ToAbsl;

constexpr absl::Duration kLook = absl::Seconds(1);
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 20;
// Above tokens with hundreds of groups; gRPC takes 8 KiB of metadata unless told otherwise.
constexpr size_t kMaxTokenBytes = 16 << 10;
constexpr size_t kMaxSubject = 256;
constexpr absl::Duration kLeeway = absl::Seconds(30);
// Tokens of so many callers; a megabyte or two.
constexpr size_t kMaxVerified = 10'000;
constexpr std::string_view kGrantPrefix = "mtmc:";

absl::Status Invalid(std::string_view what) {
  return rpc::MakeError(absl::StatusCode::kUnauthenticated, "TOKEN_INVALID",
                        absl::StrCat("the JWT ", ToAbsl(what)));
}

// One part of a token; nothing if it is no object.
std::optional<Json> ParseObject(std::string_view part) {
  const auto text = DecodeBase64Url(part);
  if (!text) return std::nullopt;
  Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  return json;
}

std::string Text(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Texts of an array, or between the spaces of one text.
std::vector<std::string> Texts(const Json& object, const std::string& name) {
  std::vector<std::string> texts;
  const auto found = object.find(name);
  if (found == object.end()) return texts;
  if (found->is_string()) {
    return absl::StrSplit(found->get<std::string>(), ' ', absl::SkipEmpty());
  }
  if (!found->is_array()) return texts;
  for (const Json& each : *found) {
    if (each.is_string()) texts.push_back(each.get<std::string>());
  }
  return texts;
}

// A NumericDate; nothing if it is there and no number.
std::optional<absl::Time> Time(const Json& claims, const std::string& name, absl::Time otherwise) {
  const auto found = claims.find(name);
  if (found == claims.end()) return otherwise;
  if (!found->is_number()) return std::nullopt;
  const auto seconds = found->get<double>();
  // Until the year 10000, so that nothing overflows.
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 253402300799.0) return std::nullopt;
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

bool IsAudience(const Json& claims, const std::string& audience) {
  const auto found = claims.find("aud");
  if (found == claims.end()) return false;
  // Unlike the grants, an audience may have spaces.
  if (found->is_string()) return found->get<std::string>() == audience;
  return found->is_array() && std::any_of(found->begin(), found->end(), [&](const Json& each) {
           return each.is_string() && each.get<std::string>() == audience;
         });
}

// `mtmc:ROLE:PROJECT`; nothing for all others.
std::optional<Grant> ParseGrant(std::string_view text) {
  if (!text.starts_with(kGrantPrefix)) return std::nullopt;
  text.remove_prefix(kGrantPrefix.size());
  const size_t colon = text.find(':');
  if (colon == text.npos) return std::nullopt;
  const auto role = FindRole(text.substr(0, colon));
  const std::string project(text.substr(colon + 1));
  if (!role || (project != kAllProjects && !base::IsResourceId(project))) return std::nullopt;
  // As in a token file: workers serve every project.
  if (*role == Role::kWorker && project != kAllProjects) return std::nullopt;
  return Grant{.role = *role, .project = project};
}

bool IsSubject(const std::string& subject) {
  return !subject.empty() && subject.size() <= kMaxSubject &&
         std::all_of(subject.begin(), subject.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// What the header and the signature say; the claims are nobody's before that.
absl::Status CheckSignature(const std::vector<std::string_view>& parts,
                            std::string_view signed_text, const JwkSet& keys) {
  const auto header = ParseObject(parts[0]);
  if (!header) return Invalid("has no header that is a JSON object");
  const std::string algorithm = Text(*header, "alg");
  // `none` and those of a shared secret are not among them, whatever the keys are.
  if (algorithm != "RS256" && algorithm != "ES256") {
    return Invalid("is not signed by RS256 or ES256");
  }
  if (header->contains("crit")) return Invalid("has a critical header that nobody knows");
  if (header->contains("kid") && Text(*header, "kid").empty()) return Invalid("has a bad kid");
  const auto signature = DecodeBase64Url(parts[2]);
  const bool is_signed = signature && keys.Verify(algorithm == "RS256" ? JwkSet::Algorithm::kRs256
                                                                       : JwkSet::Algorithm::kEs256,
                                                  Text(*header, "kid"), signed_text, *signature);
  return is_signed ? absl::OkStatus() : Invalid("is not signed by a key of the service's JWKS");
}

}  // namespace

bool LooksLikeJwt(std::string_view token) {
  return std::count(token.begin(), token.end(), '.') == 2;
}

absl::StatusOr<VerifiedJwt> VerifyJwt(std::string_view token, const JwkSet& keys,
                                      const JwtRules& rules, absl::Time now) {
  if (token.size() > kMaxTokenBytes) return Invalid("is too long");
  if (!LooksLikeJwt(token)) return Invalid("has not three parts");
  const size_t first = token.find('.');
  const size_t second = token.rfind('.');
  const std::vector<std::string_view> parts = {token.substr(0, first),
                                               token.substr(first + 1, second - first - 1),
                                               token.substr(second + 1)};
  MTMC_RETURN_IF_ERROR(CheckSignature(parts, token.substr(0, second), keys));
  const auto claims = ParseObject(parts[1]);
  if (!claims) return Invalid("has no claims that are a JSON object");
  if (Text(*claims, "iss") != rules.issuer) return Invalid("is of another issuer");
  if (!IsAudience(*claims, rules.audience)) return Invalid("is for another audience");
  const auto expiry = Time(*claims, "exp", absl::InfiniteFuture());
  const auto begin = Time(*claims, "nbf", absl::InfinitePast());
  if (!expiry || *expiry == absl::InfiniteFuture()) return Invalid("says not when it expires");
  if (!begin) return Invalid("has an nbf that is no time");
  if (now >= *expiry + kLeeway) {
    return rpc::MakeError(absl::StatusCode::kUnauthenticated, "TOKEN_EXPIRED",
                          "the JWT has expired; take a new one");
  }
  if (now < *begin - kLeeway) return Invalid("is not valid yet");
  const std::string subject = Text(*claims, "sub");
  if (!IsSubject(subject)) return Invalid("has no usable sub");
  VerifiedJwt verified{.identity = {.name = absl::StrCat("jwt:", subject)},
                       .expiry = *expiry + kLeeway};
  for (const std::string& text : Texts(*claims, rules.grants_claim)) {
    if (const auto grant = ParseGrant(text)) verified.identity.grants.push_back(*grant);
  }
  return verified;
}

absl::StatusOr<std::unique_ptr<JwtVerifier>> JwtVerifier::Open(const Options& options,
                                                               base::Clock& clock) {
  if (options.rules.issuer.empty() || options.rules.audience.empty() ||
      options.rules.grants_claim.empty()) {
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "JWT_RULES_INVALID",
                          "JWT need an issuer, an audience and a claim with their grants; give "
                          "--jwt-issuer and --jwt-audience with --jwt-keys");
  }
  std::unique_ptr<JwtVerifier> verifier(new JwtVerifier(options, clock));
  absl::MutexLock lock(&verifier->mu_);
  MTMC_RETURN_IF_ERROR(verifier->Read());
  return verifier;
}

JwtVerifier::JwtVerifier(Options options, base::Clock& clock)
    : options_(std::move(options)), clock_(clock), next_look_(clock.Now() + kLook) {}

absl::StatusOr<Identity> JwtVerifier::Verify(std::string_view token) {
  const absl::Time now = clock_.Now();
  const std::string hash = base::Sha256(token).sha256_hex;
  std::shared_ptr<const JwkSet> keys;
  {
    absl::MutexLock lock(&mu_);
    Look(now);
    const auto found = verified_.find(hash);
    if (found != verified_.end() && now < found->second.expiry) return found->second.identity;
    keys = keys_;
  }
  // Without the lock: a signature takes a tenth of a millisecond.
  absl::StatusOr<VerifiedJwt> verified = VerifyJwt(token, *keys, options_.rules, now);
  if (!verified.ok()) return verified.status();
  absl::MutexLock lock(&mu_);
  if (keys == keys_) {
    if (verified_.size() >= kMaxVerified) verified_.clear();
    verified_[hash] = *verified;
  }
  return std::move(verified->identity);
}

void JwtVerifier::Look(absl::Time now) {
  if (now < next_look_) return;
  next_look_ = now + kLook;
  const absl::Status status = Read();
  if (status.ok()) return;
  base::Log(base::LogLevel::kError, "the JWT keys cannot be used, the old ones hold",
            {{"file", options_.key_file}, {"message", base::ToStd(status.message())}});
}

absl::Status JwtVerifier::Read() {
  absl::StatusOr<std::string> text = base::ReadFile(options_.key_file, kMaxFileBytes);
  if (!text.ok()) {
    return rpc::MakeError(
        absl::StatusCode::kInvalidArgument, "JWT_KEYS_INVALID",
        absl::StrCat("\"", options_.key_file, "\" cannot be read: ", text.status().message()));
  }
  if (*text == text_) return absl::OkStatus();
  // A bad text is complained of once.
  text_ = *std::move(text);
  MTMC_ASSIGN_OR_RETURN(JwkSet keys, JwkSet::Parse(text_));
  keys_ = std::make_shared<const JwkSet>(std::move(keys));
  verified_.clear();
  return absl::OkStatus();
}

}  // namespace mtmc::access
