// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/unique_fd.h"

namespace mtmc::base {

// How a process ended. A value.
struct ExitReason {
  // Exit code, absent if a signal ended it.
  std::optional<int> exit_code;
  // Signal number, absent if it exited.
  std::optional<int> signal;
  // Processor time in user and system mode.
  absl::Duration cpu_time;
  // Largest resident set.
  std::int64_t max_resident_bytes = 0;

  bool is_success() const { return exit_code == 0; }

  // "exited with code 3", "killed by signal 11 (SIGSEGV)".
  std::string ToString() const;
};

// Where a standard stream of a child goes.
struct Stdio {
  enum class Kind { kInherit, kNull, kPipe, kFile };

  static Stdio Inherit() { return {Kind::kInherit, {}}; }

  static Stdio Null() { return {Kind::kNull, {}}; }

  // The other end is Subprocess::standard_input() and its siblings.
  static Stdio Pipe() { return {Kind::kPipe, {}}; }

  // Reads from, or appends to, the file.
  static Stdio File(std::filesystem::path path) { return {Kind::kFile, std::move(path)}; }

  Kind kind = Kind::kInherit;
  std::filesystem::path path;
};

struct SubprocessOptions {
  // Program and arguments. A program without '/' is looked up in PATH.
  std::vector<std::string> argv;

  // Names of the environment variables that the child inherits; absent: all.
  std::optional<std::vector<std::string>> inherited_variables;
  // Variables set on top of those; an absent value removes the variable.
  std::map<std::string, std::optional<std::string>> variables;

  // Empty: the parent's.
  std::filesystem::path working_folder;

  Stdio standard_input = Stdio::Null();
  Stdio standard_output = Stdio::Inherit();
  Stdio standard_error = Stdio::Inherit();

  // Further descriptors: the parent's `fd` appears as `child_fd` (3 or more).
  // All others of the parent are closed in the child.
  struct InheritedFd {
    int fd;
    int child_fd;
  };

  std::vector<InheritedFd> inherited_fds;
};

// A child process in a process group of its own.
//
// 1. It starts with an empty signal mask and default handlers.
// 2. It gets SIGKILL when this process dies, however this process dies. That
//    holds for the child itself; its own children must do likewise.
// 3. When it ends, what is left of its group is killed before it is reaped.
//
// Owns the process: the destructor kills the group and waits. Move-only.
// Thread-compatible, except that Signal() and Kill() may be called while another
// thread is in Wait().
class Subprocess {
 public:
  // NOT_FOUND if there is no such program or folder, PERMISSION_DENIED if it
  // may not run, RESOURCE_EXHAUSTED without processes, memory or descriptors.
  static absl::StatusOr<Subprocess> Start(const SubprocessOptions& options);

  Subprocess(Subprocess&&) noexcept;
  Subprocess& operator=(Subprocess&&) noexcept;
  ~Subprocess();

  pid_t pid() const;

  // From 1 on; no other process that this one has started has it, while a pid may come
  // again.
  int64_t number() const;

  // Our ends of the pipes asked for; move them out or close them with reset().
  UniqueFd& standard_input();
  UniqueFd& standard_output();
  UniqueFd& standard_error();

  // Readable when the process has ended, for poll(). Do not read.
  int exit_fd() const;

  // Blocks until the process ends; DEADLINE_EXCEEDED if it has not by
  // `deadline`. May be called again; the answer stays.
  absl::StatusOr<ExitReason> Wait(absl::Time deadline = absl::InfiniteFuture());

  // Sends a signal to the whole group; nothing if the process was reaped.
  void Signal(int signal);

  // Signal(SIGKILL).
  void Kill() { Signal(SIGKILL); }

  // Asks with SIGTERM, kills after `grace`, and waits for the end.
  ExitReason Stop(absl::Duration grace);

 private:
  struct State;

  explicit Subprocess(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace mtmc::base
