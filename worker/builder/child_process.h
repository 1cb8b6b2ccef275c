// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/message_channel.h"
#include "common/base/subprocess.h"
#include "worker/builder/child_watch.h"
#include "worker/sandbox/confine.h"

namespace google::protobuf {
class MessageLite;
}

namespace mtmc::worker {

// Descriptor on which a child speaks with the daemon: one end of a socket pair,
// length-delimited messages both ways. Its standard output and error are text
// for people.
inline constexpr int kChannelFd = 3;

// A running builder or runner with the channel to it. The destructor kills its
// process group. Thread-compatible. Not movable: the owner holds it by pointer.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> argv;
    // Working folder, made if it is missing.
    std::string scratch;
    // For the log.
    std::string name;
    // The rights of the process, borrowed for Start(); null: those of
    // the daemon.
    const Confinement* confinement = nullptr;
    // Largest resident set of the process and its descendants; 0 is no limit.
    int64_t max_resident_bytes = 0;
    // Asked every 50 ms while an exchange waits; true kills the process.
    std::function<bool()> is_cancelled = [] { return false; };
  };

  enum class Ending {
    kAnswered,
    kDied,         // of its own doing
    kKilled,       // by SIGKILL that was not ours
    kOutOfMemory,  // killed above `max_resident_bytes`
    kTimedOut,
    kCancelled,
  };

  struct Answer {
    Ending ending = Ending::kDied;
    // How the process ended and the last lines it printed; empty when it lives.
    std::string detail;
  };

  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(Options options);

  // Waits up to half a second for the end, which may take longer.
  ~ChildProcess();

  // Sends `request` and waits for `response`. After any ending but kAnswered the
  // process is killed and this object may only be destroyed; that does not wait.
  Answer Exchange(const google::protobuf::MessageLite& request,
                  google::protobuf::MessageLite& response, absl::Time deadline);

  // The two halves of an exchange. kAnswered from Send means sent.
  Answer Send(const google::protobuf::MessageLite& request, absl::Time deadline);
  Answer Receive(google::protobuf::MessageLite& response, absl::Time deadline);

  // Whether by `deadline` an answer is there, or the end of the process is. The
  // process is left alone otherwise.
  bool AwaitAnswer(absl::Time deadline);

  // Holds the process, and lets it go on.
  void Pause() { process_->Signal(SIGSTOP); }

  void Resume() { process_->Signal(SIGCONT); }

  // Of the process that was started (Subprocess).
  int64_t number() const { return number_; }

  // Kills the group without waiting for its end; the last lines that it printed.
  std::string Bury();

 private:
  ChildProcess(Options options, base::Subprocess process, base::MessageChannel channel);

  Answer Dead(const std::string& message);

  const Options options_;
  // Whether the program runs in a pid namespace behind the process that we started.
  const bool is_behind_launcher_;
  const int64_t number_;
  // Absent once it was buried.
  std::optional<base::Subprocess> process_;
  base::MessageChannel channel_;
  std::unique_ptr<ChildWatch> watch_;
};

}  // namespace mtmc::worker
