// SPDX-License-Identifier: Apache-2.0
#include "client/cli/session.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/named_endpoint.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/config/paths.h"
#include "common/rpc/status.h"

namespace mtmc::client {
namespace {

// A coordinator on this machine answers in milliseconds.
constexpr absl::Duration kProbeTimeout = absl::Seconds(2);
// One that was named may be far away.
constexpr absl::Duration kConnectTimeout = absl::Seconds(5);

std::filesystem::path StackFile() { return config::RuntimeDir() / "stack.json"; }

// The stack that another process runs, if it still serves.
std::optional<Session> FindRunningStack() {
  const auto text = base::ReadFile(StackFile());
  if (!text.ok()) return std::nullopt;
  const auto stack = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!stack.is_object()) return std::nullopt;
  Session session;
  session.endpoint = stack.value("endpoint", "");
  if (session.endpoint.empty()) return std::nullopt;
  session.api = std::make_unique<Api>(session.endpoint);
  if (!session.api->IsServing(kProbeTimeout)) return std::nullopt;
  return session;
}

absl::StatusOr<Session> ConnectTo(const std::string& endpoint,
                                  const rpc::ChannelSecurity& security) {
  MTMC_RETURN_IF_ERROR(rpc::Check(security, endpoint));
  Session session;
  session.endpoint = endpoint;
  session.api = std::make_unique<Api>(endpoint, security);
  if (session.api->IsServing(kConnectTimeout)) return session;
  return rpc::MakeError(absl::StatusCode::kUnavailable, "COORDINATOR_UNREACHABLE",
                        absl::StrCat("no coordinator answers at ", endpoint,
                                     "; start one with 'mtmc up' or set --endpoint"));
}

}  // namespace

LocalStack::Options LocalStackOptions(const StackOptions& stack) {
  LocalStack::Options options;
  options.program_dir = config::ProgramDir();
  options.data_dir =
      stack.data_dir.empty() ? config::DataDir() : std::filesystem::path(stack.data_dir);
  options.log_dir = options.data_dir / "logs";
  options.stack_file = StackFile();
  options.device = stack.device;
  options.has_all_devices = stack.has_all_devices;
  options.python = stack.python;
  options.policy_model = stack.policy_model;
  return options;
}

absl::StatusOr<Session> Connect(const CommonOptions& options) {
  const std::string named = NamedEndpoint(options.endpoint);
  if (!named.empty()) return ConnectTo(named, options.security);
  if (auto session = FindRunningStack()) return *std::move(session);
  return rpc::MakeError(absl::StatusCode::kUnavailable, "COORDINATOR_UNREACHABLE",
                        "no local stack runs; start one with 'mtmc up' or set --endpoint");
}

absl::StatusOr<Session> ConnectOrStart(const CommonOptions& options, const StackOptions& stack) {
  const std::string named = NamedEndpoint(options.endpoint);
  if (!named.empty()) return ConnectTo(named, options.security);
  if (auto session = FindRunningStack()) return *std::move(session);
  Session session;
  MTMC_ASSIGN_OR_RETURN(session.stack, LocalStack::Start(LocalStackOptions(stack)));
  session.endpoint = session.stack->endpoint();
  session.api = std::make_unique<Api>(session.endpoint);
  return session;
}

}  // namespace mtmc::client
