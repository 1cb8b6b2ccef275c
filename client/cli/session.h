// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/api.h"
#include "client/stack/local_stack.h"
#include "common/rpc/security.h"

namespace mtmc::client {

// Options that every command has.
struct CommonOptions {
  // HOST:PORT of a coordinator; empty takes MTMC_ENDPOINT, else the local stack.
  std::string endpoint;
  std::string project = "default";
  bool is_json = false;
  bool is_quiet = false;
  // Of channels to a coordinator that is named; the local stack needs none.
  rpc::ChannelSecurity security;
};

// Options of a local stack that a command may start.
struct StackOptions {
  std::string device = "auto";
  bool has_all_devices = false;
  std::string python;
  std::string data_dir;
  std::string policy_model;
};

// A coordinator to talk to, with the local stack if this process started it.
struct Session {
  std::unique_ptr<LocalStack> stack;
  std::unique_ptr<Api> api;
  std::string endpoint;
};

// Finds a coordinator: the given endpoint, MTMC_ENDPOINT, or the local stack
// that another `mtmc` process runs. UNAVAILABLE with what to do otherwise.
absl::StatusOr<Session> Connect(const CommonOptions& options);

// As Connect, but starts a local stack when there is none.
absl::StatusOr<Session> ConnectOrStart(const CommonOptions& options, const StackOptions& stack);

// Options of a local stack with embedded defaults.
LocalStack::Options LocalStackOptions(const StackOptions& stack);

}  // namespace mtmc::client
