// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/bearer_token.h"

#include <grpcpp/support/client_interceptor.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/rpc/error.h"

namespace mtmc::rpc {
namespace {

using grpc::experimental::InterceptionHookPoints;

constexpr char kAuthorization[] = "authorization";
constexpr std::uint64_t kMaxFileBytes = 64 << 10;

class TokenSender final : public grpc::experimental::Interceptor {
 public:
  explicit TokenSender(const std::string& file) : file_(file) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      auto* metadata = methods->GetSendInitialMetadata();
      if (metadata->count(kAuthorization) == 0) {
        const absl::StatusOr<std::string> token = ReadBearerToken(file_);
        if (token.ok()) metadata->emplace(kAuthorization, absl::StrCat("Bearer ", *token));
      }
    }
    methods->Proceed();
  }

 private:
  const std::string& file_;
};

class Factory final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit Factory(std::string file) : file_(std::move(file)) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    return new TokenSender(file_);  // gRPC deletes it.
  }

 private:
  const std::string file_;
};

absl::Status Invalid(const std::string& file, std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "TOKEN_FILE_INVALID",
                   absl::StrCat("token file \"", file, "\" ", std::string(why)), {{"file", file}});
}

}  // namespace

absl::StatusOr<std::string> ReadBearerToken(const std::string& file) {
  const absl::StatusOr<std::string> text = base::ReadFile(file, kMaxFileBytes);
  if (!text.ok()) return Invalid(file, absl::StrCat("cannot be read: ", text.status().message()));
  std::string token = text->substr(0, text->find_first_of("\r\n"));
  if (token.empty()) return Invalid(file, "has an empty first line");
  // gRPC aborts the process on metadata that is none.
  const bool is_printable =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (!is_printable) return Invalid(file, "has spaces or other characters that no token has");
  return token;
}

std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface> MakeTokenSender(
    std::string file) {
  return std::make_unique<Factory>(std::move(file));
}

}  // namespace mtmc::rpc
