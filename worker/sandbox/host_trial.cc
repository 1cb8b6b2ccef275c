// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox/host_trial.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/base/unique_fd.h"
#include "worker/sandbox/identity.h"
#include "worker/sandbox/landlock.h"
#include "worker/sandbox/minimal_root.h"
#include "worker/sandbox/seccomp_filter.h"

namespace mtmc::worker {
namespace {

using Attempt = std::function<absl::Status()>;

// Why `attempt` fails in a process of its own; absent when it does not.
std::optional<std::string> Try(const Attempt& attempt) {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), 0) != 0) return "no pipe";
  base::UniqueFd reader(ends[0]);
  base::UniqueFd writer(ends[1]);
  const pid_t child = fork();
  if (child < 0) return "no process";
  if (child == 0) {
    const absl::Status status = attempt();
    const std::string text(status.message());
    if (!status.ok()) [[maybe_unused]]
      const ssize_t ignored = write(writer.get(), text.data(), text.size());
    _exit(status.ok() ? 0 : 1);
  }
  writer.reset();
  std::array<char, 1024> text{};
  const ssize_t count = read(reader.get(), text.data(), text.size());
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  if (count > 0) return std::string(text.data(), static_cast<size_t>(count));
  return "the process that tried was killed";
}

// The first namespace of an ordinary user is a user namespace.
absl::Status Unshare(int flags) {
  if (!IsPrivileged()) MTMC_RETURN_IF_ERROR(EnterUserNamespace());
  if (unshare(flags) == 0) return absl::OkStatus();
  return base::SystemError(errno, "unshare");
}

// Runs `attempt` as number 1 of the new pid namespace.
absl::Status InChild(const Attempt& attempt) {
  const auto failure = Try(attempt);
  return failure ? absl::UnavailableError(*failure) : absl::OkStatus();
}

absl::Status TryUserNamespace() {
  if (IsPrivileged()) MTMC_RETURN_IF_ERROR(BecomeNobody({}));
  return EnterUserNamespace();
}

absl::Status TryPidNamespace() {
  MTMC_RETURN_IF_ERROR(Unshare(CLONE_NEWPID | CLONE_NEWNS));
  // Without a /proc of its own no program runs there.
  return InChild(
      [] { return EnterMinimalRoot({.readable = {"/usr"}}, /*has_own_processes=*/true); });
}

absl::Status TryMountNamespace() {
  MTMC_RETURN_IF_ERROR(Unshare(CLONE_NEWNS));
  return EnterMinimalRoot({.readable = {"/usr"}, .devices = {"/dev/null"}},
                          /*has_own_processes=*/false);
}

absl::Status TryLandlock() {
  MTMC_RETURN_IF_ERROR(SetNoNewPrivileges());
  if (LandlockVersion() == 0) {
    return absl::UnavailableError("the kernel has no Landlock, or lsm= leaves it out");
  }
  return RestrictWithLandlock({.readable = {"/usr"}});
}

absl::Status TrySeccomp() {
  MTMC_RETURN_IF_ERROR(SetNoNewPrivileges());
  return LoadEmptyFilter();
}

}  // namespace

HostSupport TryHost() {
  const std::pair<Mechanism, Attempt> attempts[] = {
      {Mechanism::kLimits, [] { return SetLimits({}, false); }},
      {Mechanism::kNoNewPrivileges, SetNoNewPrivileges},
      {Mechanism::kNoCapabilities, DropCapabilities},
      {Mechanism::kSeccomp, TrySeccomp},
      {Mechanism::kLandlock, TryLandlock},
      {Mechanism::kUserNamespace, TryUserNamespace},
      {Mechanism::kPidNamespace, TryPidNamespace},
      {Mechanism::kMountNamespace, TryMountNamespace},
      {Mechanism::kNetworkNamespace, [] { return Unshare(CLONE_NEWNET); }},
      {Mechanism::kIpcNamespace, [] { return Unshare(CLONE_NEWIPC); }}};
  HostSupport support;
  support.landlock_version = LandlockVersion();
  for (const auto& [mechanism, attempt] : attempts) {
    if (auto failure = Try(attempt)) support.missing[mechanism] = *std::move(failure);
  }
  return support;
}

std::string ToJson(const HostSupport& support) {
  nlohmann::json missing = nlohmann::json::object();
  for (const auto& [mechanism, reason] : support.missing) {
    missing[std::string(NameOf(mechanism))] = reason;
  }
  const nlohmann::json object = {{"landlock_version", support.landlock_version},
                                 {"missing", std::move(missing)}};
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<HostSupport> ParseHostSupport(std::string_view text) {
  const auto object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const absl::Status refusal = absl::InvalidArgumentError("not the output of mtmc-sandbox --probe");
  if (!object.is_object() || object.size() != 2) return refusal;
  const auto version = object.find("landlock_version");
  const auto missing = object.find("missing");
  if (version == object.end() || !version->is_number_unsigned()) return refusal;
  if (missing == object.end() || !missing->is_object()) return refusal;
  HostSupport support{.landlock_version = version->get<int>()};
  for (const auto& [name, reason] : missing->items()) {
    const auto mechanism = FindMechanism(name);
    if (!mechanism || !reason.is_string()) return refusal;
    support.missing[*mechanism] = reason.get<std::string>();
  }
  return support;
}

}  // namespace mtmc::worker
